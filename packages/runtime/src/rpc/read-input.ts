import { decodeJson, type Port, ValidationError } from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import type { Callable } from "./callable.ts";

/** Parses and validates the payload of one call; the value is in the schema's output form. */
export function readInput(
  port: Port,
  action: Callable,
  payload: Uint8Array,
): Result<unknown, ValidationError> {
  let text: string;
  try {
    text = port.utf8.read(payload, 0, payload.length);
  } catch {
    return err(new ValidationError({ errors: [{ path: "", message: "not valid UTF-8" }] }));
  }
  const parsed = decodeJson(text);
  if (!parsed.ok) return err(new ValidationError({ errors: parsed.issues }));
  if (action.input === undefined) return ok(undefined);
  const decoded = action.input.decode(parsed.value);
  return decoded.ok ? ok(decoded.value) : err(new ValidationError({ errors: decoded.issues }));
}
