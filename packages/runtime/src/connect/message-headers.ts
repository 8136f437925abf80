import { headers as emptyHeaders, type Msg, type MsgHdrs } from "@nats-io/nats-core";
import { utf8Bytes } from "@trellis/protocol";

const lineBreak = /[\r\n]/;

/**
 * Headers of a message as they go over the wire, written at once. The client's own way looks every name up among the
 * others and writes it letter by letter, which costs as much as signing. Throws for a value with a line break: what
 * follows it would be a header of its own.
 */
export function encodeHeaders(headers: Readonly<Record<string, string>>): Uint8Array {
  let text = "NATS/1.0\r\n";
  for (const name in headers) {
    const value = headers[name] ?? "";
    if (lineBreak.test(value)) throw new TypeError(`The value of the header ${name} has a line break.`);
    text += `${name}: ${value}\r\n`;
  }
  return utf8Bytes(`${text}\r\n`);
}

const template = emptyHeaders();

/** What the client takes for headers: it asks them for nothing but their bytes. */
export function clientHeaders(bytes: Uint8Array): MsgHdrs {
  return Object.assign(Object.create(template) as MsgHdrs, { encode: () => bytes });
}

/** What the client keeps of a message, by names of its own: `hdr` bytes of headers come before the payload. */
interface ClientMessage {
  readonly _msg?: { readonly hdr?: unknown };
  readonly _rdata?: unknown;
}

const decoder = new TextDecoder();
const needles = new Map<string, string>();

/**
 * The headers of a message as they came, one text. The client's own way to them makes a list for every name, which
 * costs more than checking a signed event; where it keeps them otherwise than it does now, theirs is the way.
 */
export function headerText(message: Msg): string {
  const { _msg, _rdata } = message as ClientMessage;
  const length = _msg?.hdr;
  if (_rdata instanceof Uint8Array && typeof length === "number")
    return length > 0 ? decoder.decode(_rdata.subarray(0, length)) : "";
  const { headers } = message;
  let text = "";
  for (const name of headers?.keys() ?? []) text += `\r\n${name}: ${headers?.get(name) ?? ""}`;
  return text === "" ? "" : `${text}\r\n`;
}

/** The first value of a header in such a text, by its exact name; `""` when there is none. */
export function headerIn(text: string, name: string): string {
  let needle = needles.get(name);
  if (needle === undefined) {
    needle = `\r\n${name}:`;
    needles.set(name, needle);
  }
  const at = text.indexOf(needle);
  if (at < 0) return "";
  const start = at + needle.length;
  const end = text.indexOf("\r\n", start);
  return text.slice(start, end < 0 ? text.length : end).trim();
}
