import { writeU32 } from "./integers.ts";
import { utf8Length, writeUtf8 } from "./utf8.ts";

/**
 * The bytes that a signature or MAC covers: every field behind its length (u32, big-endian), the domain label
 * first. No two lists of fields give the same bytes, and no proof of one domain fits another.
 * Text is UTF-8.
 */
export function transcript(label: string, ...fields: readonly (Uint8Array | string)[]): Uint8Array {
  let length = 4 + utf8Length(label);
  for (const field of fields) length += 4 + (typeof field === "string" ? utf8Length(field) : field.length);
  const bytes = new Uint8Array(length);
  let at = writeField(bytes, label, 0);
  for (const field of fields) at = writeField(bytes, field, at);
  return bytes;
}

function writeField(into: Uint8Array, field: Uint8Array | string, at: number): number {
  if (typeof field === "string") {
    const written = writeUtf8(into, field, at + 4);
    writeU32(into, at, written);
    return at + 4 + written;
  }
  writeU32(into, at, field.length);
  into.set(field, at + 4);
  return at + 4 + field.length;
}
