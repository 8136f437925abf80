import type { EventAction } from "../actions/event.ts";
import type { FeedAction } from "../actions/feed.ts";
import type { OperationAction } from "../actions/operation.ts";
import type { RpcAction } from "../actions/rpc.ts";
import type { ApiArtifact } from "./api-artifact.ts";

export type RpcRecord = Readonly<Record<string, RpcAction>>;
export type EventRecord = Readonly<Record<string, EventAction>>;
export type OperationRecord = Readonly<Record<string, OperationAction>>;
export type FeedRecord = Readonly<Record<string, FeedAction>>;

/** A record without members, as a default for type parameters. */
export type None = Readonly<Record<never, never>>;

/** A versioned set of actions, made by `defineApi`. Its actions know their name and API. */
export interface Api<
  Id extends string = string,
  R extends RpcRecord = RpcRecord,
  Ev extends EventRecord = EventRecord,
  Op extends OperationRecord = OperationRecord,
  Fe extends FeedRecord = FeedRecord,
> {
  readonly kind: "api";
  readonly id: Id;
  readonly title: string | undefined;
  readonly rpc: R;
  readonly events: Ev;
  readonly operations: Op;
  readonly feeds: Fe;
  /** What the API says on the wire, canonical, without annotations. */
  readonly artifact: ApiArtifact;
  /** base64url(SHA-256) of the canonical artifact. */
  readonly digest: string;
}

/** The four surfaces of an API, in the order in which everything lists them. */
export const SURFACES = ["rpc", "events", "operations", "feeds"] as const;

/** Name of a surface. */
export type Surface = (typeof SURFACES)[number];
