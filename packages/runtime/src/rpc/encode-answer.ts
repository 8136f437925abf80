import { DeclaredError } from "@trellis/contract";
import {
  encodeError,
  encodeJson,
  RESULT_STATUS,
  type ResultItem,
  TransportError,
  type TrellisError,
  UnexpectedError,
} from "@trellis/protocol";
import { isResult } from "@trellis/result";
import type { Callable } from "./callable.ts";
import { RefusedCall } from "./refused-call.ts";

type Answer = Omit<ResultItem, "requestId">;

export interface EncodedAnswer {
  readonly answer: Answer;
  /** What went wrong at this side and must be logged; the caller learns only its id. */
  readonly bug: UnexpectedError | undefined;
}

export function encodeFailure(error: TrellisError): Answer {
  return { status: RESULT_STATUS.error, payload: JSON.stringify(encodeError(error)) };
}

/** Encodes what a handler returned: a value, a declared error, or a Result of the two. Never throws. */
export function encodeReturned(action: Callable, returned: unknown): EncodedAnswer {
  try {
    return encodeAny(action, returned);
  } catch (thrown) {
    // A getter or a proxy of the value threw while it was looked at: the handler's failure like any other.
    return unexpected(`The handler of ${action.name} returned what cannot be read`, thrown);
  }
}

/** Encodes what a handler threw: a declared error as itself, anything else as an id. Never throws. */
export function encodeThrown(action: Callable, thrown: unknown): EncodedAnswer {
  try {
    return encodeFault(action, thrown);
  } catch (again) {
    return unexpected(`The handler of ${action.name} threw what cannot be read`, again);
  }
}

function encodeAny(action: Callable, returned: unknown): EncodedAnswer {
  if (isResult(returned)) {
    return returned.isOk() ? encodeOutput(action, returned.value) : encodeFault(action, returned.error);
  }
  return returned instanceof DeclaredError ? encodeFault(action, returned) : encodeOutput(action, returned);
}

function encodeFault(action: Callable, thrown: unknown): EncodedAnswer {
  if (thrown instanceof RefusedCall) return { answer: encodeFailure(thrown.error), bug: undefined };
  const declared = thrown instanceof DeclaredError ? action.errors[thrown.type] : undefined;
  if (declared !== undefined && thrown instanceof DeclaredError) {
    const issues = declared.dataSchema?.issues(thrown.data);
    if (issues === undefined) return { answer: encodeFailure(thrown), bug: undefined };
    return unexpected(`The data of ${thrown.type} does not fit its schema`, { issues });
  }
  // An UnexpectedError of a call further down keeps its own id there; here it is a failure of this handler.
  const bug = new UnexpectedError({ message: describe(action, thrown), cause: thrown });
  return { answer: encodeFailure(bug), bug };
}

function encodeOutput(action: Callable, value: unknown): EncodedAnswer {
  if (action.output === undefined)
    return { answer: { status: RESULT_STATUS.ok, payload: "null" }, bug: undefined };
  const issues = action.output.issues(value);
  if (issues !== undefined)
    return unexpected(`The handler of ${action.name} returned what its contract does not allow`, { issues });
  const encoded = encodeJson(value);
  if (encoded.ok) return { answer: { status: RESULT_STATUS.ok, payload: encoded.text }, bug: undefined };
  return unexpected(`The handler of ${action.name} returned what JSON cannot carry`, {
    issues: encoded.issues,
  });
}

/** The answer in place of one that the broker would not carry: always small, whatever it stands for. */
export function encodeReplyTooLarge(size: number, limit: number): Answer {
  const message = `The answer is too large: ${size} bytes, the limit is ${limit}.`;
  const error = new TransportError({ code: "trellis.rpc.reply_too_large", message });
  // The text of a transport error stays at home; this one holds nothing but two sizes.
  return { status: RESULT_STATUS.error, payload: JSON.stringify({ ...encodeError(error), message }) };
}

function unexpected(message: string, cause: unknown): EncodedAnswer {
  const bug = new UnexpectedError({ message, cause });
  return { answer: encodeFailure(bug), bug };
}

function describe(action: Callable, thrown: unknown): string {
  if (thrown instanceof DeclaredError)
    return `The handler of ${action.name} failed with ${thrown.type}, which the action does not declare`;
  return `The handler of ${action.name} failed`;
}
