import type { JobPolicy } from "@trellis/contract";
import { exponential, job } from "@trellis/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { portablePort as port } from "../port/portable.ts";
import { type JobEvent, readJobEvent } from "./job-event.ts";
import { derivedJobId, jobKey } from "./job-key.ts";
import { nextAttempt, retryDecision } from "./job-retry.ts";
import { latestSlot, nextSlot, slotJobId, timetableProblem } from "./job-schedule.ts";
import {
  isTerminalState,
  JOB_NOTES,
  JOB_STATES,
  JOB_TRANSITIONS,
  mayTransition,
  STATE_AFTER,
} from "./job-states.ts";
import { jobQueueSubjects, readJobSubject, transitionSubject } from "./job-subjects.ts";
import { UpdateFloor } from "./job-update.ts";
import { jobsPermissions } from "./jobs-binding.ts";
import { jobsLayout } from "./jobs-layout.ts";
import {
  admitToKey,
  EMPTY_KEY,
  isEmptyKey,
  type KeyLimits,
  type KeyRecord,
  readKeyRecord,
  releaseSlot,
  renewSlot,
  takeSlot,
} from "./key-record.ts";
import { EMPTY_RATE, reserveRate } from "./rate-record.ts";
import { type JobSnapshot, reduceJob, reduceJobEvent } from "./reduce-job.ts";

const context = { requestId: "r", traceId: "t", traceparent: "00-t-s-01" };

function event(eventType: JobEvent["eventType"], own: Partial<JobEvent> = {}): JobEvent {
  const isTransition = (JOB_TRANSITIONS as readonly string[]).includes(eventType);
  const state = isTransition ? STATE_AFTER[eventType as keyof typeof STATE_AFTER] : "active";
  return {
    jobId: "j1",
    service: "s",
    jobType: "q",
    eventType,
    eventId: "e",
    state,
    context,
    tries: 1,
    timestamp: "2026-01-01T00:00:00.000Z",
    ...own,
  };
}

const anyEvent = fc
  .record({
    type: fc.constantFrom(...JOB_TRANSITIONS, ...JOB_NOTES),
    foreign: fc.constantFrom("", "", "", "", "job", "service", "type"),
    tries: fc.nat(5),
    at: fc.nat(1_000_000),
  })
  .map(({ type, foreign, tries, at }) => ({
    at,
    event: event(type, {
      tries,
      ...(foreign === "job" && { jobId: "other" }),
      ...(foreign === "service" && { service: "other" }),
      ...(foreign === "type" && { jobType: "other" }),
    }),
  }));

describe("the reducer", () => {
  it("never changes a terminal snapshot but by a replay of a dead or failed job", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 30 }), (events) => {
        let snapshot: JobSnapshot | undefined = reduceJob([{ event: event("created"), at: 0 }]);
        for (const stored of events) {
          const next = reduceJobEvent(snapshot, stored);
          if (snapshot !== undefined && isTerminalState(snapshot.state) && next !== snapshot) {
            expect(stored.event.eventType).toBe("retried");
            expect(["dead", "failed"]).toContain(snapshot.state);
          }
          const { jobId, service, jobType } = stored.event;
          if (jobId !== "j1" || service !== "s" || jobType !== "q") expect(next).toBe(snapshot);
          snapshot = next;
        }
      }),
    );
  });

  it("folds a life of a job", () => {
    const snapshot = reduceJob([
      { event: event("created", { tries: 0, payload: { a: 1 }, deadline: 60_000, maxTries: 5 }), at: 1_000 },
      { event: event("started"), at: 2_000 },
      { event: event("progress", { progress: { step: "x" } }), at: 3_000 },
      { event: event("logged", { logs: [{ level: "info", message: "a" }] }), at: 3_100 },
      { event: event("logged", { logs: [{ level: "warn", message: "b" }] }), at: 3_200 },
      { event: event("waiting", { waitEdge: { id: "w", kind: "job", target: "q/1" } }), at: 3_300 },
      { event: event("waiting", { waitEdge: { id: "w", kind: "job", target: "q/2" } }), at: 3_400 },
      { event: event("retry", { retryReason: "error", error: { type: "E", message: "m" } }), at: 4_000 },
      { event: event("started", { tries: 2 }), at: 5_000 },
      { event: event("resumed", { tries: 2, waitEdge: { id: "w", kind: "job", target: "q/2" } }), at: 5_100 },
      { event: event("completed", { tries: 2, result: { b: 2 } }), at: 6_000 },
    ]);
    expect(snapshot).toMatchObject({
      state: "completed",
      tries: 2,
      maxTries: 5,
      payload: { a: 1 },
      result: { b: 2 },
      createdAt: "1970-01-01T00:00:01.000Z",
      startedAt: "1970-01-01T00:00:05.000Z",
      completedAt: "1970-01-01T00:00:06.000Z",
      deadline: "1970-01-01T00:01:01.000Z",
      waitingOn: [],
      retryReason: "error",
    });
    expect(snapshot?.logs).toHaveLength(2);
    expect(snapshot?.lastError).toBeUndefined();
  });

  it("opens a new run by a replay", () => {
    const dead = [
      { event: event("created", { payload: 1 }), at: 0 },
      { event: event("started"), at: 1 },
      { event: event("dead", { error: { type: "E", message: "m" } }), at: 2 },
    ];
    expect(reduceJob(dead)?.lastError).toEqual({ type: "E", message: "m" });
    const replayed = reduceJob([...dead, { event: event("retried", { tries: 0, payload: 2 }), at: 3 }]);
    expect(replayed).toMatchObject({ state: "pending", tries: 0, payload: 2 });
    expect(replayed).not.toHaveProperty("startedAt");
    expect(replayed).not.toHaveProperty("lastError");
  });

  it("knows when an attempt began whose start was folded into its settlement", () => {
    const snapshot = reduceJob([
      { event: event("created"), at: 1_000 },
      { event: event("completed", { ranForMs: 4 }), at: 2_000 },
    ]);
    expect(snapshot?.startedAt).toBe("1970-01-01T00:00:01.996Z");
  });
});

describe("transitions", () => {
  it("lead out of no terminal state but to a new run or a dismissal", () => {
    for (const state of JOB_STATES.filter(isTerminalState))
      for (const type of JOB_TRANSITIONS)
        expect(mayTransition(state, type)).toBe(
          (state === "dead" || state === "failed") && (type === "retried" || type === "dismissed"),
        );
    expect(JOB_TRANSITIONS.filter((type) => mayTransition(undefined, type))).toEqual(["created"]);
  });
});

describe("subjects", () => {
  const subjects = jobQueueSubjects({ deployment: "d", queue: "q", secret: "0".repeat(32) });

  it("and bodies have to agree", () => {
    const subject = transitionSubject(subjects, "j1", "completed");
    const reading = readJobSubject(subjects, subject);
    expect(reading).toEqual({ jobId: "j1", event: "completed", place: undefined });
    if (reading === undefined) return;
    expect(readJobEvent(event("completed"), reading)).toBeDefined();
    expect(readJobEvent(event("failed"), reading)).toBeUndefined();
    expect(readJobEvent(event("completed", { jobId: "j2" }), reading)).toBeUndefined();
    expect(readJobEvent({ jobId: "j1", eventType: "completed" }, reading)).toBeUndefined();
  });

  it("of anything else are not read", () => {
    for (const tail of [
      "",
      "j1",
      "j1.nothing",
      "j1.created",
      "j1.created.x",
      "j1.completed.high",
      "j1.created.high.x",
      "a b.failed",
      "*.failed",
    ])
      expect(readJobSubject(subjects, `${subjects.transitions}.${tail}`)).toBeUndefined();
    expect(readJobSubject(subjects, `${subjects.notes}.j1.completed`)).toBeUndefined();
    expect(readJobSubject(subjects, `${subjects.transitions}x.j1.failed`)).toBeUndefined();
    expect(() => transitionSubject(subjects, "a.b", "failed")).toThrow(TypeError);
    expect(() => jobQueueSubjects({ deployment: "d", queue: "q", secret: "short" })).toThrow(TypeError);
  });
});

describe("keys", () => {
  it("tell types and lengths apart", () => {
    const hash = (payload: unknown, ...segments: string[]) => {
      const reading = jobKey(port, segments, payload);
      return reading.ok ? reading.key.hash : undefined;
    };
    const values = [1, "1", true, "true", "", "a.b", "a b", 0, -1, 1.5, "é", "\0"];
    expect(new Set(values.map((a) => hash({ a }, "/a"))).size).toBe(values.length);
    expect(hash({ a: "x", b: "yz" }, "/a", "/b")).not.toBe(hash({ a: "xy", b: "z" }, "/a", "/b"));
    expect(hash({ a: 0 }, "/a")).toBe(hash({ a: -0 }, "/a"));
    for (const a of [null, undefined, {}, [], Number.NaN, Number.POSITIVE_INFINITY, "\ud800"])
      expect(hash({ a }, "/a")).toBeUndefined();
    expect(hash({}, "/__proto__")).toBeUndefined();
    expect(hash({ "a/b": { "~": 1 } }, "/a~1b/~0")).toBe(hash({ x: 1 }, "/x"));
    expect(derivedJobId(port, "x", ["a", "b"])).not.toBe(derivedJobId(port, "x", ["ab"]));
  });
});

const limits = fc.record({
  maxActive: fc.integer({ min: 1, max: 3 }),
  maxQueued: fc.nat(3),
  whenFull: fc.constantFrom("reject" as const, "coalesce" as const, "replace-oldest" as const),
});

/** A command to a key's record, by number. */
const command = fc.record({ kind: fc.nat(3), job: fc.nat(8), token: fc.nat(2) });

function step(
  record: KeyRecord,
  bound: KeyLimits,
  { kind, job, token }: { kind: number; job: number; token: number },
) {
  const id = `j${job}`;
  switch (kind) {
    case 0:
      return admitToKey(record, bound, { job: id, lane: "normal", now: 0 }).record;
    case 1: {
      const taking = takeSlot(record, bound, { job: id, lane: "normal", token: `t${token}` });
      return taking.kind === "held" ? record : taking.record;
    }
    case 2:
      return releaseSlot(record, bound, { job: id, token: `t${token}` }).record;
    default:
      return renewSlot(record, { job: id, token: `t${token}` }) ?? record;
  }
}

describe("a key's record", () => {
  it("never gives more slots than there are, holds no job twice, and lets none wait beside a free slot for long", () => {
    fc.assert(
      fc.property(limits, fc.array(command, { maxLength: 60 }), (bound, commands) => {
        let record = EMPTY_KEY;
        for (const each of commands) {
          record = step(record, bound, each);
          expect(record.slots.length).toBeLessThanOrEqual(bound.maxActive);
          const all = [...record.slots, ...record.waiters].map(({ job }) => job);
          expect(new Set(all).size).toBe(all.length);
          expect(readKeyRecord(JSON.parse(JSON.stringify(record)))).toEqual(record);
        }
        for (const { job } of [...record.slots, ...record.waiters])
          record = releaseSlot(record, bound, { job }).record;
        expect(record.slots.length + record.waiters.length).toBe(0);
        expect(isEmptyKey({ ...record, skips: [] })).toBe(true);
      }),
    );
  });

  it("is taken from a silent holder only at the very beat that was seen", () => {
    const bound: KeyLimits = { maxActive: 1, maxQueued: 1, whenFull: "reject" };
    let { record } = admitToKey(EMPTY_KEY, bound, { job: "a", lane: "normal", now: 0 });
    const take = { job: "a", lane: "normal" as const };
    const taken = takeSlot(record, bound, { ...take, token: "t1" });
    if (taken.kind === "taken") record = taken.record;
    expect(takeSlot(record, bound, { ...take, token: "t2" })).toEqual({ kind: "held", token: "t1", beat: 0 });
    record = renewSlot(record, { job: "a", token: "t1" }) ?? record;
    const late = { token: "t1", beat: 0 };
    expect(takeSlot(record, bound, { ...take, token: "t2", silent: late }).kind).toBe("held");
    expect(takeSlot(record, bound, { ...take, token: "t2", silent: { token: "t1", beat: 1 } }).kind).toBe(
      "taken",
    );
  });

  it("forgets outcomes that are many or old", () => {
    const bound: KeyLimits = { maxActive: 1, maxQueued: 0, whenFull: "reject" };
    let record = EMPTY_KEY;
    for (let n = 0; n < 100; n += 1)
      record = admitToKey(record, bound, {
        job: `j${n}`,
        lane: "normal",
        submission: `s${n}`,
        now: n,
      }).record;
    expect(record.outcomes).toHaveLength(32);
    const later = admitToKey(record, bound, { job: "x", lane: "normal", submission: "x", now: 4_000_000 });
    expect(later.record.outcomes).toHaveLength(1);
    const again = admitToKey(record, bound, { job: "y", lane: "normal", submission: "s99", now: 100 });
    expect(again).toMatchObject({ repeated: true, outcome: { kind: "rejected" } });
  });
});

describe("rates", () => {
  it("hold in any span, whenever they are asked", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 10, max: 5_000 }),
        fc.array(fc.record({ pause: fc.nat(700), want: fc.integer({ min: 1, max: 8 }) }), { maxLength: 80 }),
        (limit, perMs, asks) => {
          let record = EMPTY_RATE;
          let now = 1_000_000;
          const given: number[] = [];
          for (const { pause, want } of asks) {
            now += pause;
            const decision = reserveRate(record, { limit, perMs, want, now });
            record = decision.record;
            for (let n = 0; n < decision.granted; n += 1) given.push(now);
            if (decision.granted === 0)
              expect(
                reserveRate(record, { limit, perMs, want, now: now + decision.retryAfterMs }).granted,
              ).toBeGreaterThan(0);
            expect(record.windows.length).toBeLessThan(64);
          }
          for (const [index, at] of given.entries())
            if (index >= limit) expect(at - (given[index - limit] ?? 0)).toBeGreaterThanOrEqual(perMs);
        },
      ),
    );
  });
});

describe("attempts", () => {
  const { policy } = job({ retry: { attempts: 3, backoff: ["1s", "2s"] } });

  it("end after as many failures as the policy says, with its delays", () => {
    expect(retryDecision(policy.retry, 1, 0)).toEqual({ kind: "retry", delayMs: 1_000 });
    expect(retryDecision(policy.retry, 2, 0)).toEqual({ kind: "retry", delayMs: 2_000 });
    expect(retryDecision(policy.retry, 3, 0)).toEqual({ kind: "dead" });
    const grown: JobPolicy["retry"] = job({
      retry: { attempts: 9, backoff: exponential({ base: "1s", max: "5s", jitter: 0.5 }) },
    }).policy.retry;
    expect([1, 2, 3, 4].map((n) => retryDecision(grown, n, 0))).toMatchObject([
      { delayMs: 1_000 },
      { delayMs: 2_000 },
      { delayMs: 4_000 },
      { delayMs: 5_000 },
    ]);
    expect(retryDecision(grown, 4, 0.999)).toMatchObject({ delayMs: 2_502 });
  });

  it("count a crash once, and never go down", () => {
    const none = { tries: 0, failures: 0, crashes: 0 };
    const first = nextAttempt({ counts: none, active: false, untouched: true, deliveries: 1 });
    expect(first).toEqual({ tries: 1, failures: 0, crashes: 0 });
    const unseen = nextAttempt({ counts: none, active: false, untouched: true, deliveries: 2 });
    expect(unseen).toEqual({ tries: 2, failures: 0, crashes: 1 });
    const crashed = nextAttempt({ counts: first, active: true, untouched: false, deliveries: 7 });
    expect(crashed).toEqual({ tries: 2, failures: 0, crashes: 1 });
    const retried = nextAttempt({
      counts: { ...first, failures: 1 },
      active: false,
      untouched: false,
      deliveries: 2,
    });
    expect(retried).toEqual({ tries: 2, failures: 1, crashes: 0 });
  });
});

describe("updates", () => {
  it("of an earlier attempt, and repeated ones, are late", () => {
    const floor = new UpdateFloor();
    expect([1, 2, 2, 1, 3].map((sequence) => floor.accept({ attempt: 1, sequence }))).toEqual([
      true,
      true,
      false,
      false,
      true,
    ]);
    floor.raise(2);
    expect(floor.accept({ attempt: 1, sequence: 9 })).toBe(false);
    expect(floor.accept({ attempt: 2, sequence: 1 })).toBe(true);
    floor.raise(2);
    expect(floor.accept({ attempt: 2, sequence: 1 })).toBe(false);
  });
});

describe("schedules", () => {
  const from = (cron: string, start: string, count: number, timeZone = "Europe/Berlin") => {
    const slots: string[] = [];
    let at = Date.parse(start);
    for (let n = 0; n < count; n += 1) {
      at = nextSlot({ cron, timeZone }, at) ?? 0;
      slots.push(new Date(at).toISOString().slice(5, 16));
    }
    return slots;
  };

  it("fire a time that is skipped once, at the next instant that exists", () => {
    expect(from("30 2 * * *", "2026-03-28T00:00:00Z", 3)).toEqual([
      "03-28T01:30",
      "03-29T01:00",
      "03-30T00:30",
    ]);
  });

  it("fire a time that comes twice once", () => {
    expect(from("30 2 * * *", "2026-10-24T12:00:00Z", 2)).toEqual(["10-25T00:30", "10-26T01:30"]);
  });

  it("go on every quarter of an hour over both changes", () => {
    for (const start of ["2026-03-29T00:00:00Z", "2026-10-25T00:00:00Z"]) {
      let at = Date.parse(start);
      for (let n = 0; n < 12; n += 1) {
        const next = nextSlot({ cron: "*/15 * * * *", timeZone: "Europe/Berlin" }, at) ?? 0;
        expect(next - at).toBe(900_000);
        at = next;
      }
    }
  });

  it("have a latest slot that is one of those that come forward", () => {
    for (const cron of ["30 2 * * *", "0 * * * *", "*/15 * * * *", "0 9 * * 1", "*/10 * * * * *"]) {
      const table = { cron, timeZone: "Europe/Berlin" };
      fc.assert(
        fc.property(fc.integer({ min: 1_774_600_000, max: 1_793_500_000 }), (seconds) => {
          const now = seconds * 1_000 + 321;
          const latest = latestSlot(table, now) ?? Number.NaN;
          expect(latest).toBeLessThanOrEqual(now);
          expect(nextSlot(table, latest)).toBeGreaterThan(now);
        }),
        { numRuns: 60 },
      );
    }
  });

  it("are refused when they cannot be kept, and name their jobs by slot", () => {
    expect(timetableProblem({ cron: "0 3 * * *", timeZone: "UTC" })).toBeUndefined();
    expect(timetableProblem({ cron: "0 3 * * *", timeZone: "Nowhere/City" })).toBeDefined();
    expect(timetableProblem({ cron: "61 3 * * *", timeZone: "UTC" })).toBeDefined();
    const slot = { queue: "q", schedule: "s", at: 1 };
    expect(slotJobId(port, slot)).toBe(slotJobId(port, { ...slot }));
    expect(slotJobId(port, slot)).not.toBe(slotJobId(port, { ...slot, at: 2 }));
  });
});

describe("permissions", () => {
  const { binding, stream } = jobsLayout({
    deployment: "d1",
    service: "d1",
    secret: "ab".repeat(16),
    queues: { one: job().policy, two: job().policy },
  });

  it("are exact: no tail wildcard, nothing of another deployment, nothing that makes a stream or consumer", () => {
    const { publish, subscribe } = jobsPermissions(binding);
    for (const subject of [...publish, ...subscribe]) {
      expect(subject).not.toContain(">");
      expect(subject).not.toMatch(/STREAM\.(CREATE|UPDATE|DELETE|PURGE)|CONSUMER\.(CREATE|DURABLE|DELETE)/);
      if (!subject.startsWith("$JS.API.CONSUMER.MSG.NEXT")) expect(subject).toContain("ab".repeat(16));
    }
    expect(stream.subjects.every((subject) => subject.includes(".d1.*.abab"))).toBe(true);
  });
});
