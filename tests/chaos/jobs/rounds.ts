import { type AnyParticipant, defineService, job } from "@trellis/contract";
import { type JobEvent, type JobsBinding, type JobsLayout, jobQueueSubjects } from "@trellis/protocol/jobs";
import { eventually } from "@trellis/testing";
import { Type } from "typebox";
import type { JobRef } from "../../../packages/runtime/src/jobs/job-ref.ts";
import {
  type Jobs,
  type JobsBed,
  openReplica,
  type Plant,
  plantLayout,
  provision,
  type Replica,
} from "../../../packages/runtime/src/jobs/jobs.test-kit.ts";
import { RetryJobError } from "../../../packages/runtime/src/jobs/retry-job-error.ts";

const payload = Type.Object({
  n: Type.Number(),
  site: Type.Optional(Type.Number()),
  pad: Type.Optional(Type.String()),
});
const quick = {
  payload,
  result: Type.Object({ n: Type.Number() }),
  retry: { attempts: 4, backoff: ["20ms", "1100ms", "20ms"] },
  maxCrashes: 50,
  ackWait: "400ms",
} as const;

/** Like the queues of other tests, with short leases. */
const mill = defineService("acme.mill", {
  jobs: {
    plain: job(quick),
    keyed: job({
      ...quick,
      keyConcurrency: { key: ["/site"], heartbeatInterval: "100ms", heartbeatTtl: "400ms" },
      queue: { maxQueuedPerKey: 50 },
    }),
    replacing: job({
      ...quick,
      keyConcurrency: { key: ["/site"], heartbeatInterval: "100ms", heartbeatTtl: "400ms" },
      queue: { maxQueuedPerKey: 1, whenFull: "replace-oldest" },
    }),
  },
}) as AnyParticipant;

/** Numbers that follow from a seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export interface RoundPlan {
  readonly seed: number;
  readonly queue: "plain" | "keyed" | "replacing";
  /** Whose writes are counted: the one that makes the jobs, or the one that works on them. */
  readonly victim: "maker" | "worker";
  /** The write at which it dies. */
  readonly point: number;
  readonly when: "before" | "after";
  readonly jobs: readonly { readonly n: number; readonly site: number; readonly pad: string }[];
  /** Which of the jobs are cancelled on the way. */
  readonly cancelled: readonly number[];
}

export function planRound(seed: number): RoundPlan {
  const random = randomOf(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const queue = (["plain", "keyed", "keyed", "replacing"] as const)[below(4)] ?? "plain";
  const victim = below(5) === 0 ? "maker" : "worker";
  const count = 3 + below(5);
  const pads = ["", "", "retry", "slow", "retry-twice"];
  return {
    seed,
    queue,
    victim,
    point: 1 + below(victim === "maker" ? 2 * count : 24),
    when: below(2) === 0 ? "before" : "after",
    jobs: Array.from({ length: count }, (_, n) => ({
      n,
      site: below(2),
      pad: pads[below(pads.length)] ?? "",
    })),
    cancelled: below(4) === 0 ? [below(count)] : [],
  };
}

/** A deployment of its own on the server of a bed. */
export interface Mill {
  readonly bed: JobsBed;
  readonly layout: JobsLayout;
}

export async function openMill(bed: JobsBed): Promise<Mill> {
  const layout = plantLayout(mill);
  await provision(bed.manager, layout);
  return { bed, layout };
}

const terminal = new Set([
  "completed",
  "failed",
  "cancelled",
  "expired",
  "skipped",
  "stale",
  "dead",
  "dismissed",
]);

/** One round; true when the victim died on the way. Throws when an invariant does not hold. */
export async function runRound({ bed, layout }: Mill, plan: RoundPlan): Promise<boolean> {
  const { binding } = layout;
  const open = () =>
    openReplica(bed.nats.url, binding, { user: "admin", participant: mill, timeoutMs: 2_000 });
  const victim = await open();
  const running = new Map<string, number>();
  const overlaps: string[] = [];
  const register = (replica: Replica, alive: () => boolean) =>
    queueOf(replica.jobs, plan).handle(
      async ({ job }) => {
        const { site = 0, pad = "" } = job.payload;
        const key = plan.queue === "plain" || job.signal.aborted ? job.id : `site ${site}`;
        if (alive() && (running.get(key) ?? 0) > 0) overlaps.push(key);
        running.set(key, (running.get(key) ?? 0) + 1);
        try {
          if (pad === "slow") await new Promise((resolve) => setTimeout(resolve, 25));
          if (pad === "retry" && job.tries === 1) throw new RetryJobError();
          if (pad === "retry-twice" && job.tries <= 2) throw new RetryJobError();
          return { n: job.payload.n };
        } finally {
          running.set(key, (running.get(key) ?? 1) - 1);
        }
      },
      { concurrency: 3 },
    );
  const death = dieAt(victim, plan);
  const maker = plan.victim === "maker" ? victim : await open();
  const worker = plan.victim === "worker" ? victim : await open();
  register(worker, () => !death.dead());
  const healer = await open();
  try {
    await worker.start();
    const refs = await make(maker, healer, plan);
    await Promise.race([death.happened, Promise.all(refs.map((ref) => ref.wait({ timeout: "2s" })))]);
    // What the dead one still had in its memory runs no more.
    running.clear();
    register(healer, () => true);
    await healer.start();
    await check(bed, { layout, plan, refs, healer });
    if (overlaps.length > 0) throw new Error(`two at a time: ${overlaps.join()}`);
    return death.dead();
  } finally {
    await Promise.all([...new Set([maker, worker, healer])].map((replica) => replica.stop(100)));
  }
}

function queueOf(jobs: Jobs, plan: RoundPlan): Jobs["keyed"] {
  return jobs[plan.queue as keyof Plant["jobs"] & "keyed"];
}

/** Makes the jobs; those that a dying maker did not get to make are left out, and found by nobody. */
async function make(maker: Replica, other: Replica, plan: RoundPlan): Promise<JobRef[]> {
  const refs: JobRef[] = [];
  for (const [index, job] of plan.jobs.entries()) {
    const made = await queueOf(maker.jobs, plan).submit(job);
    if (made.isErr()) continue;
    const outcome = made.value;
    if (outcome.kind !== "accepted" && outcome.kind !== "replaced") continue;
    // Seen from a replica that lives.
    const ref = queueOf(other.jobs, plan).ref(outcome.ref.id);
    refs.push(ref);
    if (plan.cancelled.includes(index)) await ref.cancel();
  }
  return refs;
}

/** Cuts a replica off at its n-th write: as far as the broker can tell, a process that was killed. */
function dieAt({ link }: Replica, { point, when }: RoundPlan) {
  const { broker } = link;
  const publishWith = broker.publishWith.bind(broker);
  let writes = 0;
  let dead = false;
  let tell!: () => void;
  const happened = new Promise<void>((resolve) => (tell = resolve));
  const die = async (flushed: Promise<void>) => {
    broker.publishWith = () => false;
    dead = true;
    await flushed.catch(() => undefined);
    await link.close();
    tell();
  };
  broker.publishWith = (subject, payload, options) => {
    const counts = /^(jobs|jobwork|jobpark|\$KV|\$JS\.ACK)/.test(subject) && !subject.endsWith(".clock");
    if (counts) writes += 1;
    if (!counts || writes !== point) return publishWith(subject, payload, options);
    const sent = when === "after" && publishWith(subject, payload, options);
    void die(when === "after" ? link.nats.flush() : Promise.resolve());
    return sent;
  };
  return { happened, dead: () => dead };
}

interface Checked {
  readonly layout: JobsLayout;
  readonly plan: RoundPlan;
  readonly refs: readonly JobRef[];
  readonly healer: Replica;
}

/** Every job comes to exactly one end, the right one; nothing is outstanding; no key is left. */
async function check(bed: JobsBed, { layout, plan, refs, healer }: Checked): Promise<void> {
  const stuck = { timeout: "15s" } as const;
  for (const ref of refs) {
    const { state, lastError } = await ref.wait(stuck).orThrow();
    const allowed = [
      "completed",
      ...(plan.queue === "plain" ? [] : ["stale"]),
      ...(plan.queue === "replacing" ? ["skipped"] : []),
      ...(plan.cancelled.length > 0 ? ["cancelled"] : []),
    ];
    if (!allowed.includes(state)) throw new Error(`${ref.id} is ${state}: ${JSON.stringify(lastError)}`);
  }
  const { binding } = layout;
  await eventually(async () => outstanding(bed, binding, plan.queue), { timeout: 15_000, interval: 50 });
  for (const ref of refs) {
    const ends = (await transitions(bed, binding, plan.queue, ref.id)).filter(({ eventType }) =>
      terminal.has(eventType),
    );
    if (ends.length !== 1) throw new Error(`${ref.id} has ${ends.length} ends`);
  }
  if (plan.queue === "plain") return;
  await eventually(async () => (await keys(bed, layout, plan.queue)) === 0, {
    timeout: 20_000,
    interval: 50,
  });
  if (healer.surface.health().status !== "ok") throw new Error("the healer is not well");
}

async function outstanding(bed: JobsBed, { stream, queues }: JobsBinding, queue: string): Promise<boolean> {
  for (const consumer of Object.values(queues[queue]?.work ?? {})) {
    const { num_pending, num_ack_pending } = await bed.manager.consumers.info(stream, consumer);
    if (num_pending + num_ack_pending > 0) return false;
  }
  return true;
}

async function transitions(
  bed: JobsBed,
  binding: JobsBinding,
  queue: string,
  jobId: string,
): Promise<JobEvent[]> {
  const { deployment, secret, stream } = binding;
  const prefix = jobQueueSubjects({ deployment, queue, secret }).transitions;
  const events: JobEvent[] = [];
  for (let seq = 1; ; ) {
    const found = await bed.manager.direct
      .getMessage(stream, { seq, next_by_subj: `${prefix}.${jobId}.>` })
      .catch(() => null);
    if (found === null) return events;
    events.push(found.json<JobEvent>());
    seq = found.seq + 1;
  }
}

async function keys(bed: JobsBed, { bucket, binding }: JobsLayout, queue: string): Promise<number> {
  const info = await bed.manager.streams.info(bucket.name, {
    subjects_filter: `$KV.${binding.bucket}.${queue}.k.*`,
  });
  let left = 0;
  for (const subject of Object.keys(info.state.subjects ?? {})) {
    const message = await bed.manager.direct.getMessage(bucket.name, { last_by_subj: subject });
    if (message !== null && message.header.get("KV-Operation") !== "DEL") left += 1;
  }
  return left;
}
