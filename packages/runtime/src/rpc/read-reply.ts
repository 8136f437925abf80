import type { Msg } from "@nats-io/nats-core";
import type { RpcAction } from "@trellis/contract";
import {
  type DecodedResult,
  decodeError,
  decodeJson,
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
import type { CallResult } from "./pending-call.ts";
import { sequenceOf } from "./request-ids.ts";
import type { SentFrame } from "./sent-frame.ts";

export interface ReadResult {
  readonly sequence: number;
  readonly requestId: Uint8Array;
  /** Absent for a receipt: then `provider` names the connection that has the call. */
  readonly result: ((plan: RpcAction) => CallResult) | undefined;
  readonly provider: string;
}

export type ReadReply =
  | { readonly kind: "results"; readonly results: readonly ReadResult[] }
  | { readonly kind: "refusal"; readonly code: RefusalCode }
  | { readonly kind: "no-responders" }
  | { readonly kind: "ignored"; readonly reason: "malformed" | "forged" };

/** Decodes and authenticates one answer to a frame. What carries no valid MAC is at most a refusal. */
export function readReply(port: Port, { frame, message }: { frame: SentFrame; message: Msg }): ReadReply {
  if (isNoResponders(message)) return { kind: "no-responders" };
  const decoded = decodeReplyFrame(port, message.data);
  if (decoded === undefined) return { kind: "ignored", reason: "malformed" };
  if (decoded.kind === "refusal") return decoded;
  if (!verifyReplyFrame(port, { frame: decoded, reply: frame.reply, key: frame.route.keys.reply })) {
    return { kind: "ignored", reason: "forged" };
  }
  return { kind: "results", results: decoded.results.map((result) => read(port, result)) };
}

function read(port: Port, result: DecodedResult): ReadResult {
  const { requestId, status, payload } = result;
  const sequence = sequenceOf(requestId);
  const text = readText(port, payload);
  if (status === RESULT_STATUS.receipt)
    return { sequence, requestId, result: undefined, provider: readProvider(text) };
  const decode = status === RESULT_STATUS.ok ? readOutput : readError;
  return { sequence, requestId, result: (plan) => decode(plan, text), provider: "" };
}

function readText(port: Port, payload: Uint8Array): string | undefined {
  try {
    return port.utf8.read(payload, 0, payload.length);
  } catch {
    return undefined;
  }
}

function readProvider(text: string | undefined): string {
  const parsed = text === undefined ? undefined : decodeJson(text);
  return (parsed?.ok === true ? readReceipt(parsed.value)?.connection : undefined) ?? "";
}

function readOutput(plan: RpcAction, text: string | undefined): CallResult {
  if (plan.output === undefined) return ok(undefined);
  const parsed = text === undefined ? undefined : decodeJson(text);
  if (parsed === undefined || !parsed.ok) return err(unreadable(plan, parsed?.issues));
  const decoded = plan.output.decode(parsed.value);
  return decoded.ok ? ok(decoded.value) : err(unreadable(plan, decoded.issues));
}

function readError(plan: RpcAction, text: string | undefined): CallResult {
  const parsed = text === undefined ? undefined : decodeJson(text);
  return err(decodeError(parsed?.ok ? parsed.value : undefined, plan.errors));
}

function unreadable(plan: RpcAction, issues: ValidationError["errors"] | undefined): ValidationError {
  return new ValidationError({
    errors: issues ?? [{ path: "", message: "not UTF-8" }],
    message: `The answer to ${plan.name} does not fit the contract that this process was built with.`,
  });
}
