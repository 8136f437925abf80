import { DefinitionError } from "../errors/definition-error.ts";
import { compileSchema } from "../schema/compile-schema.ts";
import type { CompiledSchema } from "../schema/compiled-schema.ts";
import { requirePointer } from "../schema/require-pointer.ts";
import type { Carried, Fixed, MaybeSchema } from "../schema/schema-like.ts";
import { type Duration, parseDuration, requireCount } from "../units.ts";
import { type RetryDefinition, type RetryPolicy, retryPolicy } from "./retry.ts";

/** Which jobs of a queue may run side by side. */
export interface KeyConcurrencyDefinition {
  /** What makes a job's key: JSON pointers into the payload (`"/siteId"`) and literal words. */
  readonly key: readonly string[];
  /** Jobs of one key that run at a time. Default 1. */
  readonly maxActive?: number;
  readonly heartbeatInterval?: Duration;
  readonly heartbeatTtl?: Duration;
  /** What becomes of a slot whose holder fell silent. Default `"fail-stale"`: it is taken over. */
  readonly stalePolicy?: "fail-stale" | "block";
}

/** What happens to a job whose key is busy, or whose queue is full. */
export interface QueueDefinition {
  /** Waiting jobs per key. Default 0: none waits. */
  readonly maxQueuedPerKey?: number;
  readonly whenFull?: "reject" | "coalesce" | "replace-oldest";
}

/** A time table that makes jobs. */
export interface ScheduleDefinition {
  /** Five or six cron fields. */
  readonly cron: string;
  /** IANA time zone. Default UTC. */
  readonly timeZone?: string;
  /** Fires that nobody was there for: left out, or made up once. Default `"skip"`. */
  readonly missed?: "skip" | "once";
  /** Payload of the jobs. */
  readonly payload?: unknown;
}

/** At most `limit` starts in any span of `per`. */
export interface RateLimitDefinition {
  readonly limit: number;
  readonly per: Duration;
  /** Counted for each key apart. */
  readonly perKey?: boolean;
}

/** Definition of a job queue. */
export interface JobDefinition<P extends MaybeSchema, R extends MaybeSchema, U extends MaybeSchema> {
  readonly title?: string;
  readonly payload?: P;
  readonly result?: R;
  /** Live updates that a handler emits. */
  readonly update?: U;
  readonly retry?: RetryDefinition;
  /** Time from creation after which a job is expired. */
  readonly deadline?: Duration;
  readonly keyConcurrency?: KeyConcurrencyDefinition;
  readonly queue?: QueueDefinition;
  /** Handlers that run at a time, per replica. Default 1. */
  readonly concurrency?: number;
  /** How long the broker waits for a sign of life. Default 5 s; leases are renewed. */
  readonly ackWait?: Duration;
  /** Crashes of its worker after which a job is dead. Default 5. */
  readonly maxCrashes?: number;
  readonly rateLimit?: RateLimitDefinition;
  readonly schedules?: Readonly<Record<string, ScheduleDefinition>>;
  /** How long finished jobs are kept. Default 7 days. */
  readonly retention?: Duration;
  /** How long an id stays taken. Default 30 days. */
  readonly dedupHorizon?: Duration;
  /** The participant also runs where the queue is not bound. */
  readonly optional?: boolean;
}

/** Policy of a queue: everything but its schemas, as artifact and runtime read it. */
export interface JobPolicy {
  readonly retry: RetryPolicy;
  readonly deadlineMs: number | null;
  readonly keyConcurrency: {
    readonly key: readonly string[];
    readonly maxActive: number;
    readonly heartbeatIntervalMs: number;
    readonly heartbeatTtlMs: number;
    readonly stalePolicy: "fail-stale" | "block";
  } | null;
  readonly queue: {
    readonly maxQueuedPerKey: number;
    readonly whenFull: "reject" | "coalesce" | "replace-oldest";
  } | null;
  readonly concurrency: number;
  readonly ackWaitMs: number;
  readonly maxCrashes: number;
  readonly rateLimit: { readonly limit: number; readonly perMs: number; readonly perKey: boolean } | null;
  readonly schedules: Readonly<
    Record<string, Required<Omit<ScheduleDefinition, "payload">> & { readonly payload: unknown }>
  >;
  readonly retentionMs: number;
  readonly dedupHorizonMs: number;
}

/** A job queue of a participant. */
export interface JobResource<
  P extends MaybeSchema = MaybeSchema,
  R extends MaybeSchema = MaybeSchema,
  U extends MaybeSchema = MaybeSchema,
> {
  readonly kind: "job";
  readonly title: string | undefined;
  readonly schemas: { readonly payload: P; readonly result: R; readonly update: U };
  readonly payload: CompiledSchema | undefined;
  readonly result: CompiledSchema | undefined;
  readonly update: CompiledSchema | undefined;
  readonly policy: JobPolicy;
  readonly optional: boolean;
}

/** Defines a job queue. */
export function job<
  P extends MaybeSchema = undefined,
  R extends MaybeSchema = undefined,
  U extends MaybeSchema = undefined,
>(
  definition?: JobDefinition<P, R, U> & {
    readonly payload?: Carried<P>;
    readonly result?: Carried<R>;
    readonly update?: Carried<U>;
  },
): JobResource<Fixed<P>, Fixed<R>, Fixed<U>>;
export function job(given: JobDefinition<MaybeSchema, MaybeSchema, MaybeSchema> = {}): JobResource {
  return {
    kind: "job",
    title: given.title,
    schemas: { payload: given.payload, result: given.result, update: given.update },
    payload: maybe(given.payload),
    result: maybe(given.result),
    update: maybe(given.update),
    policy: jobPolicy(given),
    optional: given.optional ?? false,
  };
}

function maybe(schema: MaybeSchema): CompiledSchema | undefined {
  return schema === undefined ? undefined : compileSchema(schema);
}

function jobPolicy(given: JobDefinition<MaybeSchema, MaybeSchema, MaybeSchema>): JobPolicy {
  const { deadline, rateLimit } = given;
  const retentionMs = parseDuration(given.retention ?? "7d", "job retention");
  const dedupHorizonMs = parseDuration(
    given.dedupHorizon ?? Math.max(retentionMs, 30 * 86_400_000),
    "job dedupHorizon",
  );
  if (dedupHorizonMs < retentionMs) {
    throw new DefinitionError({
      place: "job dedupHorizon",
      problem: "it is shorter than the retention, so an id could be taken by two living jobs",
      hint: "Make it at least as long as retention",
    });
  }
  return {
    retry: retryPolicy(given.retry, "job retry"),
    deadlineMs: deadline === undefined ? null : parseDuration(deadline, "job deadline"),
    keyConcurrency:
      given.keyConcurrency === undefined ? null : keyConcurrency(given.keyConcurrency, maybe(given.payload)),
    queue: given.queue === undefined ? null : queuePolicy(given.queue),
    concurrency: requireCount(given.concurrency ?? 1, "job concurrency"),
    ackWaitMs: parseDuration(given.ackWait ?? "5s", "job ackWait"),
    maxCrashes: requireCount(given.maxCrashes ?? 5, "job maxCrashes"),
    rateLimit:
      rateLimit === undefined
        ? null
        : {
            limit: requireCount(rateLimit.limit, "job rateLimit limit"),
            perMs: parseDuration(rateLimit.per, "job rateLimit per"),
            perKey: rateLimit.perKey ?? false,
          },
    schedules: schedulePolicies(given.schedules ?? {}),
    retentionMs,
    dedupHorizonMs,
  };
}

function keyConcurrency(
  given: KeyConcurrencyDefinition,
  payload: CompiledSchema | undefined,
): NonNullable<JobPolicy["keyConcurrency"]> {
  const place = "job keyConcurrency";
  if (given.key.length === 0)
    throw new DefinitionError({ place: `${place} key`, problem: "a key needs a segment" });
  for (const segment of given.key)
    if (segment.startsWith("/")) requirePointer(`${place} key`, segment, payload);
  const heartbeatIntervalMs = parseDuration(given.heartbeatInterval ?? "30s", `${place} heartbeatInterval`);
  const heartbeatTtlMs = parseDuration(given.heartbeatTtl ?? "2m", `${place} heartbeatTtl`);
  if (heartbeatTtlMs <= heartbeatIntervalMs) {
    throw new DefinitionError({
      place: `${place} heartbeatTtl`,
      problem: "it is not longer than heartbeatInterval, so every slot would look abandoned",
    });
  }
  return {
    key: given.key,
    maxActive: requireCount(given.maxActive ?? 1, `${place} maxActive`),
    heartbeatIntervalMs,
    heartbeatTtlMs,
    stalePolicy: given.stalePolicy ?? "fail-stale",
  };
}

function queuePolicy(given: QueueDefinition): NonNullable<JobPolicy["queue"]> {
  return {
    maxQueuedPerKey: requireCount(given.maxQueuedPerKey ?? 0, "job queue maxQueuedPerKey", 0),
    whenFull: given.whenFull ?? "reject",
  };
}

function schedulePolicies(given: Readonly<Record<string, ScheduleDefinition>>): JobPolicy["schedules"] {
  const policies: Record<string, JobPolicy["schedules"][string]> = {};
  for (const [name, { cron, timeZone = "UTC", missed = "skip", payload = null }] of Object.entries(given)) {
    const fields = cron.trim().split(/\s+/).length;
    if (fields !== 5 && fields !== 6) {
      throw new DefinitionError({
        place: `job schedule ${JSON.stringify(name)}`,
        problem: `${JSON.stringify(cron)} has ${fields} fields`,
        hint: 'Write five cron fields (minute, hour, day, month, weekday), like "0 3 * * *"',
      });
    }
    policies[name] = { cron, timeZone, missed, payload };
  }
  return policies;
}
