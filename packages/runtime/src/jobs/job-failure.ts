import {
  AuthError,
  BusyError,
  CancelledError,
  TimeoutError,
  TransportError,
  UnavailableError,
} from "@trellis/protocol";
import { type JobError } from "@trellis/protocol/jobs";
import { isBaseError, UnexpectedError } from "@trellis/result";
import { PublishError } from "../jetstream/publisher.ts";
import type { JobFailure } from "./job-handler.ts";

const passing = [AuthError, BusyError, CancelledError, TimeoutError, TransportError, UnavailableError];

/** The typed error of what came out of a request to the broker. */
export function asJobFailure(thrown: unknown): JobFailure {
  for (const kind of passing) if (thrown instanceof kind) return thrown;
  if (thrown instanceof PublishError)
    return new TransportError({
      code: "trellis.jobs.refused",
      message: "The broker did not store a job's event.",
      context: { errCode: thrown.errCode },
    });
  return UnexpectedError.from(thrown);
}

const maxText = 2_000;

/**
 * The stored form of what a handler threw or returned. Text that a store could not hold, and text without end, is
 * cleaned: that an error cannot be written must not keep a job from failing.
 */
export function describeJobError(thrown: unknown, notes: Readonly<Record<string, string>> = {}): JobError {
  const { type, message, id, details } = parts(thrown);
  const annotated = { ...(details === undefined ? {} : { error: details }), ...notes };
  return {
    type: clean(type).slice(0, 128),
    message: clean(message),
    ...(id === undefined ? {} : { id: clean(id).slice(0, 64) }),
    ...(Object.keys(annotated).length === 0 ? {} : { details: annotated }),
  };
}

function parts(thrown: unknown): { type: string; message: string; id?: string; details?: unknown } {
  if (isBaseError(thrown)) {
    const data: unknown = "data" in thrown ? thrown.data : thrown.details;
    const details = data === undefined ? undefined : serialisable(data);
    return { type: thrown.type, message: thrown.message, id: thrown.id, details };
  }
  if (thrown instanceof Error) return { type: thrown.name, message: thrown.message };
  return { type: typeof thrown, message: typeof thrown === "string" ? thrown : "not an Error" };
}

function serialisable(value: unknown): unknown {
  try {
    const text = JSON.stringify(value);
    return text.length <= 8 * maxText ? (JSON.parse(clean(text)) as unknown) : undefined;
  } catch {
    return undefined;
  }
}

function clean(text: string): string {
  const short = text.length > maxText ? `${text.slice(0, maxText)}…` : text;
  return short.toWellFormed().replaceAll("\0", "\ufffd");
}
