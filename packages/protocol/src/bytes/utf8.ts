interface TextEncoderLike {
  encode(text: string): Uint8Array;
  encodeInto(text: string, into: Uint8Array): { read: number; written: number };
}

interface TextDecoderLike {
  decode(bytes: Uint8Array): string;
}

/** The two web constructors that every platform has and that the language's own library does not declare. */
interface TextGlobals {
  readonly TextEncoder: new () => TextEncoderLike;
  readonly TextDecoder: new (
    label: string,
    options: { fatal: boolean; ignoreBOM: boolean },
  ) => TextDecoderLike;
}

const platform: TextGlobals = globalThis as typeof globalThis & TextGlobals;
const encoder = new platform.TextEncoder();
const decoder = new platform.TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Whether the text has a surrogate without its other half: such text has no UTF-8 form. */
export function hasLoneSurrogate(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < 0xd800 || code > 0xdfff) continue;
    if (code > 0xdbff) return true;
    const next = text.charCodeAt(index + 1);
    if (!(next >= 0xdc00 && next <= 0xdfff)) return true;
    index += 1;
  }
  return false;
}

/** How many bytes the text takes in UTF-8. A lone surrogate counts as U+FFFD (three bytes). */
export function utf8Length(text: string): number {
  let length = text.length;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < 0x80) continue;
    if (code < 0x800) {
      length += 1;
      continue;
    }
    length += 2;
    if (code >= 0xd800 && code <= 0xdbff) {
      const next = text.charCodeAt(index + 1);
      // A pair is four bytes for two code units: two were counted by `text.length`, two just now.
      if (next >= 0xdc00 && next <= 0xdfff) index += 1;
    }
  }
  return length;
}

/**
 * Writes the text as UTF-8 and returns how many bytes it took. A lone surrogate becomes U+FFFD.
 * The array must have room: check with {@link utf8Length}.
 */
export function writeUtf8(into: Uint8Array, text: string, at: number): number {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code >= 0x80) {
      return (
        index + encoder.encodeInto(index === 0 ? text : text.slice(index), into.subarray(at + index)).written
      );
    }
    into[at + index] = code;
  }
  return text.length;
}

/** Fills an array of the text's length; `false` when the text is not ASCII and so does not fit. */
export function encodeAscii(text: string, into: Uint8Array): boolean {
  const { read, written } = encoder.encodeInto(text, into);
  return read === text.length && written === text.length;
}

/** UTF-8 bytes of the text. */
export function utf8Bytes(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Text of UTF-8 bytes; `undefined` when they are not valid UTF-8. A byte order mark is kept. */
export function utf8Text(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/** Text of UTF-8 bytes; throws a `TypeError` when they are not valid UTF-8. A byte order mark is kept. */
export function readUtf8(from: Uint8Array, start: number, end: number): string {
  return decoder.decode(from.subarray(start, end));
}
