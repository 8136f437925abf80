const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/** Kind "user": makes the text begin with U. */
const userPrefix = 20 << 3;

/**
 * Spells an Ed25519 public key as the broker does: kind, key and CRC-16 (XMODEM, little-endian) in base32
 * without padding. Only the spelling: signing is done by the platform's own crypto, which is far faster
 * than the nkeys library.
 */
export function userNkey(publicKey: Uint8Array): string {
  const bytes = new Uint8Array(1 + publicKey.length + 2);
  bytes[0] = userPrefix;
  bytes.set(publicKey, 1);
  const crc = crc16(bytes.subarray(0, -2));
  bytes[bytes.length - 2] = crc & 0xff;
  bytes[bytes.length - 1] = crc >> 8;
  return base32(bytes);
}

function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++)
      crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc;
}

function base32(bytes: Uint8Array): string {
  let text = "";
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xffff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += alphabet[(value >> bits) & 31];
    }
  }
  return bits > 0 ? text + alphabet[(value << (5 - bits)) & 31] : text;
}
