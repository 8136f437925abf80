import type { JobPolicy } from "@trellis/contract";
import { type Static, Type } from "typebox";
import { JOB_LANES, type JobLane } from "./job-subjects.ts";
import { schemaCheck } from "./schema-check.ts";

const id = Type.String({ maxLength: 256 });
const lane = Type.Enum(JOB_LANES);

/**
 * One key of a queue: who runs, who waits, and what became of recent submissions. A slot without a token was granted
 * and not yet taken by a worker; `beat` grows with every sign of life of its holder. Written under compare-and-set.
 */
export const KeyRecordSchema = Type.Object({
  v: Type.Literal(1),
  slots: Type.Array(
    Type.Object({ job: id, lane, token: Type.Optional(id), beat: Type.Integer({ minimum: 0 }) }),
  ),
  waiters: Type.Array(Type.Object({ job: id, lane })),
  /** Waiters that were replaced and whose `skipped` may not be stored yet. */
  skips: Type.Array(id),
  outcomes: Type.Array(
    Type.Object({
      submission: id,
      at: Type.Integer(),
      outcome: Type.Union([
        Type.Object({ kind: Type.Literal("accepted"), job: id }),
        Type.Object({ kind: Type.Literal("replaced"), job: id, replaced: id }),
        Type.Object({ kind: Type.Literal("coalesced"), existing: id }),
        Type.Object({
          kind: Type.Literal("rejected"),
          reason: Type.Enum(["active-limit", "queue-depth", "stale-blocked"]),
          existing: Type.Optional(id),
        }),
      ]),
    }),
  ),
});
export type KeyRecord = Static<typeof KeyRecordSchema>;
export type KeySlot = KeyRecord["slots"][number];
export type KeyWaiter = KeyRecord["waiters"][number];
export type AdmissionOutcome = KeyRecord["outcomes"][number]["outcome"];

const check = schemaCheck(KeyRecordSchema);

export const EMPTY_KEY: KeyRecord = { v: 1, slots: [], waiters: [], skips: [], outcomes: [] };

/** The record of a decoded body; `undefined` when it is none. */
export function readKeyRecord(body: unknown): KeyRecord | undefined {
  return check(body) ? body : undefined;
}

/** True when nothing is left to know: the record is to be removed. */
export function isEmptyKey(record: KeyRecord): boolean {
  const { slots, waiters, skips, outcomes } = record;
  return slots.length + waiters.length + skips.length + outcomes.length === 0;
}

/** How many run and wait at a time; of a queue without keys only those that wait are bounded. */
export interface KeyLimits {
  /** `Infinity` where only the queue's depth is bounded. */
  readonly maxActive: number;
  readonly maxQueued: number;
  readonly whenFull: "reject" | "coalesce" | "replace-oldest";
}

/** The limits of a queue's policy; `undefined` when it has none. */
export function keyLimits({ keyConcurrency, queue }: JobPolicy): KeyLimits | undefined {
  if (keyConcurrency === null && queue === null) return undefined;
  return {
    maxActive: keyConcurrency?.maxActive ?? Number.POSITIVE_INFINITY,
    maxQueued: queue?.maxQueuedPerKey ?? 0,
    whenFull: queue?.whenFull ?? "reject",
  };
}

export interface Admission {
  readonly job: string;
  readonly lane: JobLane;
  /** The same submission gives the same outcome for as long as it is remembered. */
  readonly submission?: string | undefined;
  /** The holder of a slot fell silent, and nobody may take it over. */
  readonly blocked?: boolean | undefined;
  readonly now: number;
}

export interface Admitted {
  readonly record: KeyRecord;
  readonly outcome: AdmissionOutcome;
  /** Of an accepted job: it owns a slot, and goes to work. */
  readonly granted: boolean;
  /** The submission, or the job itself, was seen before; the record is as it was. */
  readonly repeated: boolean;
}

const maxOutcomes = 32;
const outcomeAgeMs = 3_600_000;

/** Lets a new job in, or says why not. */
export function admitToKey(record: KeyRecord, limits: KeyLimits, admission: Admission): Admitted {
  const { job, submission } = admission;
  const known = record.outcomes.find((each) => submission !== undefined && each.submission === submission);
  if (known !== undefined) return repeated(record, known.outcome);
  if (holds(record.slots, job) || holds(record.waiters, job))
    return repeated(record, { kind: "accepted", job });
  const decided = decide(record, limits, admission);
  return { ...decided, record: remember(decided.record, admission, decided.outcome), repeated: false };
}

function repeated(record: KeyRecord, outcome: AdmissionOutcome): Admitted {
  const job = outcome.kind === "accepted" || outcome.kind === "replaced" ? outcome.job : undefined;
  return { record, outcome, granted: job !== undefined && holds(record.slots, job), repeated: true };
}

function decide(record: KeyRecord, limits: KeyLimits, admission: Admission): Omit<Admitted, "repeated"> {
  const { job, lane, blocked = false } = admission;
  const accepted: AdmissionOutcome = { kind: "accepted", job };
  const slot: KeySlot = { job, lane, beat: 0 };
  if (mayGrant(record, limits))
    return { record: { ...record, slots: [...record.slots, slot] }, outcome: accepted, granted: true };
  if (blocked) return reject(record, "stale-blocked");
  const bounded = Number.isFinite(limits.maxActive);
  if (bounded && record.waiters.length < limits.maxQueued)
    return {
      record: { ...record, waiters: [...record.waiters, { job, lane }] },
      outcome: accepted,
      granted: false,
    };
  const queued: readonly KeyWaiter[] = bounded ? record.waiters : record.slots.filter(isUntaken);
  if (limits.whenFull === "coalesce") {
    const existing = (queued.at(-1) ?? record.slots.at(-1))?.job;
    if (existing !== undefined) return { record, outcome: { kind: "coalesced", existing }, granted: false };
  }
  const oldest = queued[0]?.job;
  if (limits.whenFull !== "replace-oldest" || oldest === undefined)
    return reject(record, limits.maxQueued === 0 ? "active-limit" : "queue-depth");
  const left = without(record, oldest);
  const rest = { ...left, skips: [...left.skips, oldest] };
  return {
    record: bounded
      ? { ...rest, waiters: [...rest.waiters, { job, lane }] }
      : { ...rest, slots: [...rest.slots, slot] },
    outcome: { kind: "replaced", job, replaced: oldest },
    granted: !bounded,
  };
}

function mayGrant({ slots, waiters }: KeyRecord, { maxActive, maxQueued }: KeyLimits): boolean {
  if (Number.isFinite(maxActive)) return slots.length < maxActive && waiters.length === 0;
  return slots.filter(isUntaken).length < maxQueued;
}

function reject(record: KeyRecord, reason: "active-limit" | "queue-depth" | "stale-blocked") {
  const existing = record.slots[0]?.job;
  const outcome: AdmissionOutcome =
    existing === undefined ? { kind: "rejected", reason } : { kind: "rejected", reason, existing };
  return { record, outcome, granted: false };
}

function remember(record: KeyRecord, { submission, now }: Admission, outcome: AdmissionOutcome): KeyRecord {
  const kept = record.outcomes.filter(({ at }) => now - at < outcomeAgeMs);
  if (submission === undefined)
    return kept.length === record.outcomes.length ? record : { ...record, outcomes: kept };
  return { ...record, outcomes: [...kept, { submission, at: now, outcome }].slice(-maxOutcomes) };
}

export type Taking =
  | { readonly kind: "taken"; readonly record: KeyRecord }
  /** No slot is free: the job waits with its key, before those that came later. */
  | { readonly kind: "waits"; readonly record: KeyRecord }
  /** Another attempt of this very job holds its slot. */
  | { readonly kind: "held"; readonly token: string; readonly beat: number };

export interface Take {
  readonly job: string;
  readonly lane: JobLane;
  readonly token: string;
  /** The holder that was seen to be silent for the slot's whole time-to-live: its slot may be taken from it. */
  readonly silent?: { readonly token: string; readonly beat: number } | undefined;
}

/** A worker takes the slot of a job that it is about to run. */
export function takeSlot(record: KeyRecord, limits: KeyLimits, take: Take): Taking {
  const { job, lane, token, silent } = take;
  const slot = record.slots.find((each) => each.job === job);
  const mine: KeySlot = { job, lane, token, beat: 0 };
  if (slot === undefined) {
    const rest = without(record, job);
    if (rest.slots.length < limits.maxActive)
      return { kind: "taken", record: { ...rest, slots: [...rest.slots, mine] } };
    if (holds(record.waiters, job)) return { kind: "waits", record };
    return { kind: "waits", record: { ...rest, waiters: [{ job, lane }, ...rest.waiters] } };
  }
  const other = slot.token !== undefined && slot.token !== token ? slot.token : undefined;
  if (other !== undefined && !(silent?.token === other && silent.beat === slot.beat))
    return { kind: "held", token: other, beat: slot.beat };
  const slots = record.slots.map((each) => (each === slot ? mine : each));
  return { kind: "taken", record: { ...record, slots } };
}

/** A sign of life of a slot's holder; `undefined`: it holds it no longer. */
export function renewSlot(record: KeyRecord, holder: { job: string; token: string }): KeyRecord | undefined {
  const slot = record.slots.find(({ job, token }) => job === holder.job && token === holder.token);
  if (slot === undefined) return undefined;
  const slots = record.slots.map((each) => (each === slot ? { ...each, beat: each.beat + 1 } : each));
  return { ...record, slots };
}

export interface Released {
  readonly record: KeyRecord;
  /** Those that own a slot now and have to be put to work, in order. */
  readonly promoted: readonly KeySlot[];
}

/**
 * Lets go of a job's slot or place among the waiters, and gives free slots to those that wait. With a token only that
 * attempt's slot is let go of.
 */
export function releaseSlot(
  record: KeyRecord,
  limits: KeyLimits,
  released: { job: string; token?: string | undefined },
): Released {
  const { job, token } = released;
  const slot = record.slots.find((each) => each.job === job);
  const foreign = token !== undefined && slot?.token !== undefined && slot.token !== token;
  return promote(foreign ? record : without(record, job), limits);
}

/** Gives free slots to those that wait. */
function promote(record: KeyRecord, { maxActive }: KeyLimits): Released {
  const free = Math.max(0, maxActive - record.slots.length);
  const promoted = record.waiters.slice(0, free).map((waiter): KeySlot => ({ ...waiter, beat: 0 }));
  if (promoted.length === 0) return { record, promoted };
  const waiters = record.waiters.slice(promoted.length);
  return { record: { ...record, slots: [...record.slots, ...promoted], waiters }, promoted };
}

/** The record after a replaced job's `skipped` was stored. */
export function clearSkip(record: KeyRecord, job: string): KeyRecord {
  return record.skips.includes(job)
    ? { ...record, skips: record.skips.filter((each) => each !== job) }
    : record;
}

/** Slots that were granted and that no worker has taken yet. */
export function untakenSlots(record: KeyRecord): readonly KeySlot[] {
  return record.slots.filter(isUntaken);
}

/** The record without remembered outcomes that are too old; the same record when there are none. */
export function ageOutcomes(record: KeyRecord, now: number): KeyRecord {
  const kept = record.outcomes.filter(({ at }) => now - at < outcomeAgeMs);
  return kept.length === record.outcomes.length ? record : { ...record, outcomes: kept };
}

function isUntaken({ token }: KeySlot): boolean {
  return token === undefined;
}

function holds(list: readonly { readonly job: string }[], job: string): boolean {
  return list.some((each) => each.job === job);
}

function without(record: KeyRecord, job: string): KeyRecord {
  return {
    ...record,
    slots: record.slots.filter((each) => each.job !== job),
    waiters: record.waiters.filter((each) => each.job !== job),
  };
}
