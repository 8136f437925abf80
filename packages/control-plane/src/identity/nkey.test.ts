import { describe, expect, it } from "vitest";
import { decodeNkey, encodeNkey } from "./nkey.ts";

/** Made by the reference implementation. */
const known = [
  ["user", "UAKVIARUTFYR5WPHTAOOL7CWXWQ4OV7B75DKTQUEGFJLHXRBBTSPXXGS"],
  ["account", "ABNFAZ7V2LYWP7EEQ4BZHXVACSB4KDBYOGRWTYUWUPL26QCM7NI3N2FG"],
  ["curve", "XD7QVMHPB3ZQUNROBWKXKOKSRQ6CP6RTINW4QUH77HASSWXAFV2XGIUK"],
] as const;

describe("nkey text", () => {
  it.each(known)("reads and writes a %s key", (kind, text) => {
    const raw = decodeNkey(kind, text);
    expect(raw).toHaveLength(32);
    expect(encodeNkey(kind, raw ?? new Uint8Array())).toBe(text);
  });

  it("refuses another kind, a changed character and a wrong length", () => {
    const text = known[0][1];
    expect(decodeNkey("account", text)).toBeUndefined();
    expect(decodeNkey("user", text.slice(0, -1))).toBeUndefined();
    expect(
      decodeNkey("user", `${text.slice(0, 20)}${text[20] === "A" ? "B" : "A"}${text.slice(21)}`),
    ).toBeUndefined();
    expect(decodeNkey("user", `u${text.slice(1)}`)).toBeUndefined();
  });
});
