import type { JsonObject } from "@trellis/result";
import { within } from "../errors/within.ts";
import type { ConsumerResource, Replay } from "../resources/consumer.ts";
import type { JobPolicy, JobResource } from "../resources/job.ts";
import type { KvResource } from "../resources/kv.ts";
import type { RetryPolicy } from "../resources/retry.ts";
import type { StateResource } from "../resources/state.ts";
import type { StoreResource } from "../resources/store.ts";
import {
  type ApiArtifact,
  type ArtifactSchema,
  artifactSchema,
  type EventArtifact,
  eventArtifact,
  type FeedArtifact,
  feedArtifact,
  mapRecord,
  type OperationArtifact,
  operationArtifact,
  type RpcArtifact,
  rpcArtifact,
} from "./api-artifact.ts";
import type { Participant, ParticipantKind, Resources } from "./participant.ts";
import type { Use } from "./use.ts";

/** A use in an artifact: what the consumer was built against, so that an install can tell whether it still fits. */
export interface UseArtifact {
  readonly api: string;
  readonly as: string | null;
  readonly optional: boolean;
  readonly rpc: Readonly<Record<string, RpcArtifact>>;
  readonly events: Readonly<Record<string, EventArtifact>>;
  readonly operations: Readonly<Record<string, OperationArtifact>>;
  readonly feeds: Readonly<Record<string, FeedArtifact>>;
}

/** A key-value bucket in an artifact. */
export interface KvArtifact {
  readonly value: JsonObject;
  readonly history: number;
  readonly ttlMs: number | null;
  readonly maxValueBytes: number | null;
  readonly version: number;
  readonly optional: boolean;
}

/** An object store in an artifact. */
export interface StoreArtifact {
  readonly ttlMs: number | null;
  readonly maxObjectBytes: number | null;
  readonly maxTotalBytes: number | null;
  readonly optional: boolean;
}

/** A job queue in an artifact. */
export interface JobArtifact extends JobPolicy {
  readonly payload: ArtifactSchema;
  readonly result: ArtifactSchema;
  readonly update: ArtifactSchema;
  readonly optional: boolean;
}

/** A durable consumer in an artifact. */
export interface ConsumerArtifact {
  readonly events: readonly { readonly api: string; readonly event: string }[];
  readonly concurrency: number;
  readonly replay: Replay;
  readonly retry: RetryPolicy;
  readonly ordering: "none" | "per-key";
  readonly ackWaitMs: number;
  readonly optional: boolean;
}

/** State in an artifact. */
export interface StateArtifact {
  readonly value: JsonObject;
  readonly ttlMs: number | null;
  readonly version: number;
}

/** A participant as JSON: what is digested and installed. */
export interface ParticipantArtifact {
  readonly format: "trellis.participant/v1";
  readonly kind: ParticipantKind;
  readonly id: string;
  readonly implements: readonly ApiArtifact[];
  readonly uses: readonly UseArtifact[];
  readonly kv: Readonly<Record<string, KvArtifact>>;
  readonly store: Readonly<Record<string, StoreArtifact>>;
  readonly jobs: Readonly<Record<string, JobArtifact>>;
  readonly consumers: Readonly<Record<string, ConsumerArtifact>>;
  readonly state: Readonly<Record<string, StateArtifact>>;
}

/** Writes a participant down. APIs and uses are sorted by id: their order in the source says nothing. */
export function participantArtifact(
  participant: Omit<Participant, "artifact" | "digest">,
): ParticipantArtifact {
  const place = `${participant.kind} ${participant.id}`;
  const each = <R, J>(
    kind: keyof Resources,
    resources: Readonly<Record<string, R>>,
    write: (resource: R) => J,
  ) =>
    mapRecord(resources, (resource, alias) =>
      within(`${place}, ${kind} ${JSON.stringify(alias)}`, () => write(resource)),
    );
  return {
    format: "trellis.participant/v1",
    kind: participant.kind,
    id: participant.id,
    implements: participant.implements.map((api) => api.artifact).sort((a, b) => compare(a.id, b.id)),
    uses: participant.uses
      .map(useArtifact)
      .sort((a, b) => compare(a.api, b.api) || compare(a.as ?? "", b.as ?? "")),
    kv: each("kv", participant.kv, kvArtifact),
    store: each("store", participant.store, storeArtifact),
    jobs: each("jobs", participant.jobs, jobArtifact),
    consumers: each("consumers", participant.consumers, consumerArtifact),
    state: each("state", participant.state, stateArtifact),
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Actions of a use stand under their own names, whatever the facade calls them. */
function useArtifact(used: Use): UseArtifact {
  return {
    api: used.api.id,
    as: used.as ?? null,
    optional: used.optional,
    rpc: byOwnName(used.rpc, rpcArtifact),
    events: byOwnName(used.events, eventArtifact),
    operations: byOwnName(used.operations, operationArtifact),
    feeds: byOwnName(used.feeds, feedArtifact),
  };
}

function byOwnName<A extends { readonly name: string }, J>(
  actions: Readonly<Record<string, A>>,
  write: (action: A) => J,
): Record<string, J> {
  return Object.fromEntries(Object.values(actions).map((action) => [action.name, write(action)]));
}

function kvArtifact(kv: KvResource): KvArtifact {
  return {
    value: artifactSchema(kv.value),
    history: kv.history,
    ttlMs: kv.ttlMs ?? null,
    maxValueBytes: kv.maxValueBytes ?? null,
    version: kv.version,
    optional: kv.optional,
  };
}

function storeArtifact(store: StoreResource): StoreArtifact {
  return {
    ttlMs: store.ttlMs ?? null,
    maxObjectBytes: store.maxObjectBytes ?? null,
    maxTotalBytes: store.maxTotalBytes ?? null,
    optional: store.optional,
  };
}

function jobArtifact(job: JobResource): JobArtifact {
  return {
    payload: job.payload === undefined ? null : artifactSchema(job.payload),
    result: job.result === undefined ? null : artifactSchema(job.result),
    update: job.update === undefined ? null : artifactSchema(job.update),
    ...job.policy,
    optional: job.optional,
  };
}

function consumerArtifact(consumer: ConsumerResource): ConsumerArtifact {
  return {
    events: consumer.events.map((event) => ({ api: event.api, event: event.name })),
    concurrency: consumer.concurrency,
    replay: consumer.replay,
    retry: consumer.retry,
    ordering: consumer.ordering,
    ackWaitMs: consumer.ackWaitMs,
    optional: consumer.optional,
  };
}

function stateArtifact(state: StateResource): StateArtifact {
  return { value: artifactSchema(state.value), ttlMs: state.ttlMs ?? null, version: state.version };
}
