import { utf8Length } from "../bytes/utf8.ts";

/** Names that Windows gives to devices, with or without an ending. */
const RESERVED = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:\.|$)/i;
/** Bytes of UTF-8; file systems take 255. */
const MAX_BYTES = 200;

/**
 * A name under which an object can be saved in a folder, on any system: the last part of its key without anything
 * that could lead elsewhere, end a header, or mean a device. Never empty, never `.` or `..`. Two keys may give
 * the same name, and a link of that name may exist: open the file exclusively.
 */
export function safeFileName(key: string): string {
  const parts = key.split(/[/\\]/).filter((part) => part !== "");
  const last = parts.at(-1) ?? "";
  const clean = last
    // Control characters, what Windows forbids, and marks that turn the reading direction.
    .replace(/[\u0000-\u001f\u007f-\u009f<>:"|?*\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu, "_")
    .replace(/^[. ]+/, (dots) => "_".repeat(dots.length))
    .replace(/[. ]+$/, (dots) => "_".repeat(dots.length));
  const short = shorten(clean);
  if (short === "") return "_";
  return RESERVED.test(short) ? `_${short}` : short;
}

/** As many whole code points as fit. */
function shorten(text: string): string {
  let length = 0;
  let bytes = 0;
  for (const point of text) {
    bytes += utf8Length(point);
    if (bytes > MAX_BYTES) return text.slice(0, length);
    length += point.length;
  }
  return text;
}
