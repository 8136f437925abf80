import { describe, expect, it } from "vitest";
import { connectToken, isNonce, parseUserName, userName } from "./user-name.ts";

const digest = "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0";

describe("user names", () => {
  it("carry digest and connection", () => {
    expect(connectToken(digest)).toBe(digest);
    expect(parseUserName(userName(digest, "01JCON"))).toEqual({ digest, connection: "01JCON" });
  });

  it("of another kind are none of ours", () => {
    for (const name of [
      "",
      "trellis:",
      `trellis:${digest}`,
      `trellis:${digest}:`,
      `trellis:${digest}:a.b`,
      `x:${digest}:c`,
      `trellis:${digest}:c:d`,
      `trellis:${digest.slice(1)}:c`,
    ]) {
      expect(parseUserName(name)).toBeUndefined();
    }
  });
});

describe("isNonce", () => {
  it("takes what a server sends, and nothing that could be something else", () => {
    expect(isNonce("XdUzrTy4JfOpYfY")).toBe(true);
    expect(isNonce("a".repeat(64))).toBe(true);
    for (const text of [
      "",
      "short",
      "a".repeat(65),
      "XdUzrTy4JfOpYf.",
      "XdUzrTy4JfOp YfY",
      "XdUzrTy4JfOpYfY\n",
      "\0\0\0\u0017trellis.rpc",
    ]) {
      expect(isNonce(text)).toBe(false);
    }
  });
});
