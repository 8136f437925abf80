const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Two characters for each 12 bits: a 32-byte digest is eleven look-ups. */
const PAIRS: readonly string[] = Array.from(
  { length: 4096 },
  (_, bits) => `${ALPHABET[bits >> 6]}${ALPHABET[bits & 63]}`,
);

const VALUES: Uint8Array = (() => {
  const values = new Uint8Array(128).fill(255);
  for (let index = 0; index < ALPHABET.length; index += 1) values[ALPHABET.charCodeAt(index)] = index;
  return values;
})();

/** base64url without padding (RFC 4648, section 5). */
export function toBase64Url(bytes: Uint8Array): string {
  const whole = bytes.length - (bytes.length % 3);
  let text = "";
  for (let at = 0; at < whole; at += 3) {
    const bits = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    text += `${PAIRS[bits >> 12]}${PAIRS[bits & 4095]}`;
  }
  const rest = bytes.length - whole;
  if (rest === 1) return text + PAIRS[(bytes[whole] ?? 0) << 4];
  if (rest === 2) {
    const bits = ((bytes[whole] ?? 0) << 10) | ((bytes[whole + 1] ?? 0) << 2);
    return `${text}${PAIRS[bits >> 6]}${ALPHABET[bits & 63]}`;
  }
  return text;
}

/**
 * Bytes of base64url text. Strict: no padding, no other alphabet, no white space, and the unused bits of the
 * last character are zero, so that one value has one spelling. `undefined` for anything else.
 */
export function fromBase64Url(text: string): Uint8Array | undefined {
  const rest = text.length % 4;
  if (rest === 1) return undefined;
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  let bits = 0;
  let held = 0;
  let at = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    const value = code < 128 ? (VALUES[code] ?? 255) : 255;
    if (value === 255) return undefined;
    bits = ((bits << 6) | value) & 0xffff;
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes[at] = (bits >> held) & 255;
      at += 1;
    }
  }
  return (bits & ((1 << held) - 1)) === 0 ? bytes : undefined;
}
