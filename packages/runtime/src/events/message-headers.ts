import { headers as emptyHeaders, type MsgHdrs } from "@nats-io/nats-core";
import { utf8Bytes } from "@trellis/protocol";

/**
 * Headers of a message, written at once. The client's own way looks every name up among the others and writes it
 * letter by letter, which costs as much as signing. Names and values are ours: they hold no line breaks.
 */
export function encodeHeaders(headers: Readonly<Record<string, string>>): Uint8Array {
  let text = "NATS/1.0\r\n";
  for (const name in headers) text += `${name}: ${headers[name]}\r\n`;
  return utf8Bytes(`${text}\r\n`);
}

const template = emptyHeaders();

/** What the client takes for headers: it asks them for nothing but their bytes. */
export function rawHeaders(bytes: Uint8Array): MsgHdrs {
  return Object.assign(Object.create(template) as MsgHdrs, { encode: () => bytes });
}
