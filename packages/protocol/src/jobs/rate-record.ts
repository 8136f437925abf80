import { type Static, Type } from "typebox";
import { schemaCheck } from "./schema-check.ts";

/** Starts of late, counted by short windows: beginning in ms, and how many. Written under compare-and-set. */
export const RateRecordSchema = Type.Object({
  v: Type.Literal(1),
  windows: Type.Array(Type.Tuple([Type.Integer(), Type.Integer({ minimum: 1 })]), { maxItems: 128 }),
});
export type RateRecord = Static<typeof RateRecordSchema>;

const check = schemaCheck(RateRecordSchema);

export const EMPTY_RATE: RateRecord = { v: 1, windows: [] };

export function readRateRecord(body: unknown): RateRecord | undefined {
  return check(body) ? body : undefined;
}

export interface RateRequest {
  readonly limit: number;
  readonly perMs: number;
  /** Permits wanted. */
  readonly want: number;
  /** By the broker's clock, ms. */
  readonly now: number;
}

export interface RateDecision {
  /** Permits given, from 0 to `want`. */
  readonly granted: number;
  readonly record: RateRecord;
  /** When to ask again, when none was given. */
  readonly retryAfterMs: number;
}

/** A span is counted in so many windows: what that costs is at most so small a part of the rate. */
const windowsPerSpan = 32;

/**
 * Gives permits so that no span of `perMs` ever holds more than `limit` of them. A permit may be used until its window and one more are over, and counts until a whole span
 * after that, so that the record stays small and the bound strict.
 */
export function reserveRate(record: RateRecord, { limit, perMs, want, now }: RateRequest): RateDecision {
  const width = Math.max(1, Math.floor(perMs / windowsPerSpan));
  const counted = record.windows.filter(([start]) => start + 2 * width + perMs > now);
  const used = counted.reduce((sum, [, count]) => sum + count, 0);
  const granted = Math.max(0, Math.min(want, limit - used));
  if (granted === 0) {
    const [first] = counted[0] ?? [now];
    return {
      granted,
      record: { v: 1, windows: counted },
      retryAfterMs: Math.max(1, first + 2 * width + perMs - now),
    };
  }
  const start = Math.floor(now / width) * width;
  const windows = counted.filter(([at]) => at !== start);
  const already = counted.find(([at]) => at === start)?.[1] ?? 0;
  windows.push([start, already + granted]);
  windows.sort(([a], [b]) => a - b);
  return { granted, record: { v: 1, windows }, retryAfterMs: 0 };
}
