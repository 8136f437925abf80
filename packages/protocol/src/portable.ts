// For browsers and tests: the port without a platform behind it. An entry of its own, so that a server does not
// load cryptography that it never uses.
export { portablePort } from "./port/portable.ts";
