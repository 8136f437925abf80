import type { RetryPolicy } from "@trellis/contract";
import { backoffDelay } from "../lifecycle/backoff.ts";

/** The pause after failed attempt number `attempt` (from 1), ms. */
export function retryDelay({ backoff }: RetryPolicy, attempt: number): number {
  if (backoff.kind === "delays") {
    const { delaysMs } = backoff;
    return delaysMs[Math.min(attempt, delaysMs.length) - 1] ?? 0;
  }
  const { baseMs, factor, maxMs, jitter } = backoff;
  return backoffDelay(attempt, { initial: baseMs, max: maxMs ?? Number.MAX_SAFE_INTEGER, factor, jitter });
}
