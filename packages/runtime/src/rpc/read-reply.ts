import type { Msg } from "@nats-io/nats-core";
import {
  type DecodedResult,
  decodeError,
  decodeJsonBytes,
  decodeReplyFrame,
  type Port,
  RESULT_STATUS,
  type RefusalCode,
  readReceipt,
  ValidationError,
  verifyReplyFrame,
} from "@trellis/protocol";
import { err, ok } from "@trellis/result";
import { isNoResponders } from "../connect/inbox.ts";
import type { Callable } from "./callable.ts";
import type { CallResult } from "./pending-call.ts";
import type { SentFrame } from "./sent-frame.ts";

export type OpenedReply =
  | { readonly kind: "results"; readonly results: readonly DecodedResult[] }
  | { readonly kind: "refusal"; readonly code: RefusalCode }
  | { readonly kind: "no-responders" }
  | { readonly kind: "ignored"; readonly reason: "malformed" | "forged" };

/** Decodes and authenticates one answer to a frame. What carries no valid MAC is at most a refusal. */
export function openReply(port: Port, frame: SentFrame, message: Msg): OpenedReply {
  if (isNoResponders(message)) return { kind: "no-responders" };
  const decoded = decodeReplyFrame(port, message.data);
  if (decoded === undefined) return { kind: "ignored", reason: "malformed" };
  if (decoded.kind === "refusal") return decoded;
  const { reply, route } = frame;
  if (verifyReplyFrame(port, { frame: decoded, reply, key: route.keys.reply })) return decoded;
  return { kind: "ignored", reason: "forged" };
}

/** The result of one call: its output decoded, or its error as a class. */
export function readResult(port: Port, action: Callable, result: DecodedResult): CallResult {
  const parsed = decodeJsonBytes(port, result.payload);
  if (result.status === RESULT_STATUS.error) {
    return err(decodeError(parsed.ok ? parsed.value : undefined, action.errors));
  }
  if (action.output === undefined) return ok(undefined);
  if (!parsed.ok) return err(unreadable(action, parsed.issues));
  const decoded = action.output.decode(parsed.value);
  return decoded.ok ? ok(decoded.value) : err(unreadable(action, decoded.issues));
}

/** The connection that a receipt names. */
export function readProvider(port: Port, payload: Uint8Array): string | undefined {
  const parsed = decodeJsonBytes(port, payload);
  return parsed.ok ? readReceipt(parsed.value)?.connection : undefined;
}

function unreadable(action: Callable, errors: ValidationError["errors"]): ValidationError {
  const message = `The answer to ${action.name} does not fit the contract that this process was built with`;
  return new ValidationError({ errors, message });
}
