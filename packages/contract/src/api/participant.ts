import type { ConsumerResource } from "../resources/consumer.ts";
import type { JobResource } from "../resources/job.ts";
import type { KvResource } from "../resources/kv.ts";
import type { StateResource } from "../resources/state.ts";
import type { StoreResource } from "../resources/store.ts";
import type { Api, None } from "./api.ts";
import type { ParticipantArtifact } from "./participant-artifact.ts";
import type { Use } from "./use.ts";

/** What a participant keeps for itself: resources by alias. */
export interface Resources {
  readonly kv: Readonly<Record<string, KvResource>>;
  readonly store: Readonly<Record<string, StoreResource>>;
  readonly jobs: Readonly<Record<string, JobResource>>;
  readonly consumers: Readonly<Record<string, ConsumerResource>>;
  readonly state: Readonly<Record<string, StateResource>>;
}

/** What kind of thing a participant is. */
export type ParticipantKind = "service" | "app";

/**
 * What is installed and runs: a service or an app. Made by `defineService` or `defineApp`; the types of every handle
 * of the runtime come from it.
 */
export interface Participant<
  Kind extends ParticipantKind = ParticipantKind,
  Id extends string = string,
  Implements extends Api = Api,
  Uses extends Use<unknown, unknown, unknown, unknown> = Use,
  Res extends Resources = Resources,
> {
  readonly kind: Kind;
  readonly id: Id;
  readonly title: string | undefined;
  readonly implements: readonly Implements[];
  readonly uses: readonly Uses[];
  readonly kv: Res["kv"];
  readonly store: Res["store"];
  readonly jobs: Res["jobs"];
  readonly consumers: Res["consumers"];
  readonly state: Res["state"];
  /** What the participant says on the wire, canonical, without annotations. */
  readonly artifact: ParticipantArtifact;
  /** base64url(SHA-256) of the canonical artifact. */
  readonly digest: string;
}

/** Any participant, for type parameters. */
export type AnyParticipant = Participant<
  ParticipantKind,
  string,
  Api,
  Use<unknown, unknown, unknown, unknown>
>;

/** All members of a union of records in one record. */
type Merged<Union> = [Union] extends [never]
  ? None
  : (Union extends unknown ? (record: Union) => void : never) extends (record: infer All) => void
    ? All
    : never;

/** RPCs that a participant calls, by the dotted name from which its facade is made. */
export type UsedRpc<P extends AnyParticipant> = Merged<P["uses"][number]["rpc"]>;
/** Events that a participant consumes. */
export type UsedEvents<P extends AnyParticipant> = Merged<P["uses"][number]["events"]>;
/** Operations that a participant starts. */
export type UsedOperations<P extends AnyParticipant> = Merged<P["uses"][number]["operations"]>;
/** Feeds that a participant opens. */
export type UsedFeeds<P extends AnyParticipant> = Merged<P["uses"][number]["feeds"]>;
/** RPCs that a participant answers. */
export type OwnedRpc<P extends AnyParticipant> = Merged<P["implements"][number]["rpc"]>;
/** Events that a participant publishes. */
export type OwnedEvents<P extends AnyParticipant> = Merged<P["implements"][number]["events"]>;
/** Operations that a participant executes. */
export type OwnedOperations<P extends AnyParticipant> = Merged<P["implements"][number]["operations"]>;
/** Feeds that a participant produces. */
export type OwnedFeeds<P extends AnyParticipant> = Merged<P["implements"][number]["feeds"]>;
