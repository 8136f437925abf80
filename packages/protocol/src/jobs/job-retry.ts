import type { JobPolicy } from "@trellis/contract";

/** What becomes of a job whose attempt ended with an error of the retryable kind. */
export type RetryDecision =
  | { readonly kind: "retry"; readonly delayMs: number }
  /** Its attempts are used up. */
  | { readonly kind: "dead" };

/**
 * Decides on failed attempt number `failures` (from 1); `random` is in [0, 1). Crashes of workers and attempts that a
 * stop handed back are not among the failures.
 */
export function retryDecision(
  { attempts, backoff }: JobPolicy["retry"],
  failures: number,
  random: number,
): RetryDecision {
  if (failures >= attempts) return { kind: "dead" };
  if (backoff.kind === "delays") return { kind: "retry", delayMs: backoff.delaysMs[failures - 1] ?? 0 };
  const { baseMs, factor, maxMs, jitter } = backoff;
  const grown = baseMs * factor ** (failures - 1);
  const bounded = Math.min(grown, maxMs ?? Number.MAX_SAFE_INTEGER);
  return { kind: "retry", delayMs: Math.max(1, Math.round(bounded * (1 - jitter * random))) };
}

/** What is stored of the attempts of a job so far. */
export interface AttemptCounts {
  readonly tries: number;
  readonly failures: number;
  readonly crashes: number;
}

export interface Redelivery {
  readonly counts: AttemptCounts;
  /** The last transition is a start: that attempt ended without a word. */
  readonly active: boolean;
  /** Nothing but the job's creation, or its replay, is stored. */
  readonly untouched: boolean;
  /** Deliveries of the message, this one included. */
  readonly deliveries: number;
}

/**
 * The counts that the next start of a job is stored with. A start that nothing followed ended with its worker; so
 * did, as far as anybody can tell, the first delivery of a job of which nothing but its creation is stored.
 */
export function nextAttempt({ counts, active, untouched, deliveries }: Redelivery): AttemptCounts {
  const unseen = untouched && deliveries > 1;
  const crashed = active || unseen ? 1 : 0;
  return {
    tries: counts.tries + 1 + (unseen ? 1 : 0),
    failures: counts.failures,
    crashes: counts.crashes + crashed,
  };
}

/** Milliseconds until a job's deadline, which counts from its creation; `Infinity` without one. */
export function timeLeft(
  job: { readonly createdAt: number; readonly deadline?: number | undefined },
  now: number,
): number {
  return job.deadline === undefined ? Number.POSITIVE_INFINITY : job.createdAt + job.deadline - now;
}

/** When a delayed job is due, ms: at a fixed instant, or so much after it was stored. */
export function dueAt(
  event: { readonly delayMs?: number | undefined; readonly runAt?: number | undefined },
  storedAt: number,
): number {
  return event.runAt ?? storedAt + (event.delayMs ?? 0);
}
