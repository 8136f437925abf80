import { headers as emptyHeaders, type MsgHdrs } from "@nats-io/nats-core";
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
