import { fromBase64Url, type Port } from "@trellis/protocol";

/**
 * The y coordinates of Ed25519's points of small order, in every encoding, the sign bit cleared. Under such a key
 * one signature holds for every text, so it proves nothing about who made it.
 */
const smallOrder: ReadonlySet<string> = new Set([
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]);

/** Whether a public key, base64url, can prove who signs: 32 bytes, and not of small order. */
export function isSigningKey(key: string): boolean {
  const bytes = fromBase64Url(key);
  if (bytes?.length !== 32) return false;
  const plain = Buffer.from(bytes);
  plain.writeUInt8(plain.readUInt8(31) & 0x7f, 31);
  return !smallOrder.has(plain.toString("hex"));
}

/** Whether secrets can be shared with a public key, base64url: with a point of small order they are all the same. */
export function isExchangeKey(port: Port, key: string): boolean {
  const bytes = fromBase64Url(key);
  try {
    return bytes !== undefined && port.x25519.keyPair().shared(bytes).length === 32;
  } catch {
    return false;
  }
}
