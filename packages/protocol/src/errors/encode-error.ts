import type { BaseError, JsonObject, JsonValue } from "@trellis/result";
import { hasLoneSurrogate } from "../bytes/utf8.ts";
import { encodeJson } from "../json/encode.ts";
import type { ErrorEnvelope } from "./envelope.ts";
import { ValidationError } from "./validation-error.ts";

const UNEXPECTED_MESSAGE = "An unexpected error occurred";
const MAX_TEXT = 2_000;
const MAX_ISSUES = 50;

/** Errors whose text may name hosts, subjects or values of this process: they travel with a text of ours. */
const WITHHELD: Readonly<Record<string, string>> = {
  UnexpectedError: UNEXPECTED_MESSAGE,
  TransportError: "The provider's own connection failed",
};

/**
 * What of an error may leave the process: id, kind, type, message, typed data or details, trace. Never the stack,
 * the cause, the hint or the context; of an unexpected error nothing but its id. What is no error of ours is
 * unexpected. The envelope is always JSON that can be written.
 */
export function encodeError(error: BaseError): ErrorEnvelope {
  if (error.kind === "declared") return declaredEnvelope(error);
  if (error.kind !== "call" || error.type === "UnexpectedError") return unexpectedEnvelope(error);
  const details = error instanceof ValidationError ? issueDetails(error) : error.details;
  return {
    id: error.id,
    kind: "call",
    type: error.type,
    message: WITHHELD[error.type] ?? cleanText(error.message),
    ...(details !== undefined && encodeJson(details).ok && { details }),
    ...traceOf(error),
  };
}

/** {@link encodeError} as JSON text. */
export function encodeErrorText(error: BaseError): string {
  return JSON.stringify(encodeError(error));
}

function declaredEnvelope(error: BaseError): ErrorEnvelope {
  const data: unknown = "data" in error ? error.data : undefined;
  // Data that JSON would change is a mistake of the provider, not an answer to the caller.
  if (data !== undefined && !isJson(data)) return unexpectedEnvelope(error);
  return {
    id: error.id,
    kind: "declared",
    type: error.type,
    message: cleanText(error.message),
    ...(data !== undefined && { data }),
    ...traceOf(error),
  };
}

function unexpectedEnvelope(error: BaseError): ErrorEnvelope {
  return {
    id: error.id,
    kind: "call",
    type: "UnexpectedError",
    message: UNEXPECTED_MESSAGE,
    ...traceOf(error),
  };
}

function issueDetails(error: ValidationError): JsonObject {
  const errors = error.errors
    .slice(0, MAX_ISSUES)
    .map(({ path, message }) => ({ path: cleanText(path), message: cleanText(message) }));
  return { errors };
}

function isJson(value: unknown): value is JsonValue {
  return encodeJson(value).ok;
}

function traceOf(error: BaseError): { readonly traceId?: string } {
  return error.traceId === undefined ? {} : { traceId: cleanText(error.traceId) };
}

/** Bounded, and free of what JSON cannot carry. */
function cleanText(text: string): string {
  const short = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
  if (!hasLoneSurrogate(short)) return short;
  let clean = "";
  // Iterating gives whole code points: a surrogate that comes alone is a lone one.
  for (const point of short) clean += hasLoneSurrogate(point) ? "\ufffd" : point;
  return clean;
}
