import { compileSchema } from "@trellis/contract";
import { decodeJsonBytes, type Port, type Signed, SignedSchema } from "@trellis/protocol";

/** Reads a signed statement off the wire; `undefined` for anything else. It is not verified yet. */
export function readSigned(port: Port, data: Uint8Array): Signed | undefined {
  const parsed = decodeJsonBytes(port, data);
  if (!parsed.ok || compileSchema(SignedSchema).issues(parsed.value) !== undefined) return undefined;
  return parsed.value as Signed;
}
