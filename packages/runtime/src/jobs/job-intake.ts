import {
  type AttemptCounts,
  isTerminalState,
  type JobError,
  nextAttempt,
  timeLeft,
} from "@trellis/protocol/jobs";
import type { JobFacts } from "./job-facts.ts";

/** A message that calls for work on a job. */
export interface WorkCall {
  readonly sequence: number;
  readonly deliveries: number;
  /** By the broker's clock, ms. */
  readonly now: number;
  /** The attempt whose slot was seen to be without a sign of life for its whole time-to-live. */
  readonly silent?: { readonly token: string; readonly beat: number } | undefined;
}

/** What is to be done about it. */
export type Intake =
  | { readonly kind: "run"; readonly counts: AttemptCounts; readonly stale: boolean }
  /** It is over; what it held is to be let go of. */
  | { readonly kind: "settled" }
  /** It is not due yet. */
  | { readonly kind: "park"; readonly at: number }
  /** It ends without being run. */
  | { readonly kind: "end"; readonly type: "expired" | "dead"; readonly error: JobError }
  /** There is nothing to do: no such job, or another message stands for it. */
  | { readonly kind: "drop" };

/** Timers of the broker fire a moment early or late; so much counts as due, ms. */
const dueLeewayMs = 50;

/**
 * Decides on a call for work.
 *
 * Invariant I1: an attempt is followed by another only when the message that it works on comes again, which means that
 * its worker is gone or has lost its lease; any other call for an active job is a repetition.
 */
export function decideIntake(facts: JobFacts | undefined, call: WorkCall, maxCrashes: number): Intake {
  if (facts === undefined) return { kind: "drop" };
  if (isTerminalState(facts.state)) return { kind: "settled" };
  const active = facts.state === "active";
  const silent = call.silent !== undefined && call.silent.token === facts.token;
  if (active && facts.source !== call.sequence && !silent) return { kind: "drop" };
  if (timeLeft(facts, call.now) <= 0) return { kind: "end", type: "expired", error: expired() };
  if (!active && facts.due > call.now + dueLeewayMs) return { kind: "park", at: facts.due };
  const untouched = facts.state === "pending";
  const counts = nextAttempt({ counts: facts.counts, active, untouched, deliveries: call.deliveries });
  if (counts.crashes >= maxCrashes) return { kind: "end", type: "dead", error: crashed(counts.crashes) };
  return { kind: "run", counts, stale: facts.retryReason === "stale-attempt" };
}

function expired(): JobError {
  return { type: "Expired", message: "The deadline passed before the job was done" };
}

function crashed(crashes: number): JobError {
  return {
    type: "Crashed",
    message: `${crashes} attempts ended with their worker; it is not tried again`,
    details: { crashes },
  };
}
