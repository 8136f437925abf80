import type { AnyParticipant } from "@trellis/contract";
import type { RequestByName } from "../client/calling.ts";
import type { ClientMiddleware } from "../client/middleware.ts";
import type { Connection } from "../connect/connection-status.ts";
import type { EventListenFacade } from "../events/event-listeners.ts";
import type {
  EventPayloads,
  EventPublishFacade,
  PrepareByName,
  PublishByName,
  PublishPrepared,
} from "../events/event-publishers.ts";
import type { FeedHandleFacade, FeedOpenFacade } from "../feeds/feed-facade.ts";
import type { Health } from "../health/health.ts";
import type { JobsCallFacade, JobsFacade } from "../jobs/jobs-facade.ts";
import type { KvFacade } from "../kv/kv-facade.ts";
import type { RpcCallFacade, RpcHandleFacade } from "../rpc/rpc-facade.ts";
import type { StateFacade } from "../state/state.ts";
import type { StoreFacade } from "../store/store-facade.ts";
import type { ServiceMiddleware } from "./middleware.ts";

/** The client of a service, outside its handlers (`service.client`) and, bound to the request, inside them. */
export type ServiceClient<P extends AnyParticipant> = {
  /** The RPCs that the participant uses. */
  readonly rpc: RpcCallFacade<P>;
  /** The feeds that the participant uses. */
  readonly feed: FeedOpenFacade<P>;
  /** Calls an RPC by its dotted name. */
  readonly request: RequestByName;
  /** The events of the participant's own APIs: `prepare`, `publish`. */
  readonly event: EventPublishFacade<P>;
  /** Publishes an event that was prepared before, byte for byte. */
  readonly publishPrepared: PublishPrepared;
  readonly kv: KvFacade<P>;
  readonly store: StoreFacade<P>;
  /** The declared state of the service itself, by alias. */
  readonly state: StateFacade<P>;
  /** The declared queues: `create`, `submit`, `createMany`. */
  readonly jobs: JobsCallFacade<P>;
  /** As `event.<group>.<leaf>.prepare`, by the event's dotted name; one that is none of this participant's: `NotFoundError`. */
  readonly prepare: PrepareByName<EventPayloads<P>>;
  /** As `event.<group>.<leaf>.publish`, by the event's dotted name. */
  readonly publish: PublishByName<EventPayloads<P>>;
} & {};

export type ServiceHandles<P extends AnyParticipant> = {
  /** Registers handlers: `service.handle.rpc.<group>.<leaf>(async ({ input, context, client }) => ...)`. */
  readonly rpc: RpcHandleFacade<P, ServiceClient<P>>;
  /** Registers producers: `service.handle.feed.<group>.<leaf>(async ({ input, emit, signal }) => ...)`. */
  readonly feed: FeedHandleFacade<P, ServiceClient<P>>;
} & {};

/** Who this service is on the platform, as the platform signed it. */
export interface ServiceAuth {
  readonly participant: { readonly id: string; readonly digest: string };
  readonly deployment: string;
  readonly instance: string;
  readonly connectionId: string;
}

export interface StopOptions {
  /** Budget of the whole shutdown, ms. Default 10 000. Handlers that run longer are aborted and left. */
  readonly timeout?: number;
}

export interface WaitOptions extends StopOptions {
  /** Owned actions without a handler are an error, not a warning. Default false. */
  readonly strict?: boolean;
}

/** A connected service: register handlers, then `await service.wait()`. */
export type ConnectedService<P extends AnyParticipant> = AsyncDisposable & {
  /** The deployment's stable name, the same in all its replicas. */
  readonly name: string;
  readonly auth: ServiceAuth;
  readonly connection: Connection;
  readonly handle: ServiceHandles<P>;
  readonly client: ServiceClient<P>;
  /** Listens to events: `service.event.<group>.<leaf>.listen(async ({ event, context, client }) => ...)`. */
  readonly event: EventListenFacade<P, ServiceClient<P>>;
  /** The declared key-value buckets, by alias. */
  readonly kv: KvFacade<P>;
  /** The declared object stores, by alias. */
  readonly store: StoreFacade<P>;
  /** The declared queues: `service.jobs.<queue>.handle(async ({ job, client }) => ...)`, `create`, `submit`. */
  readonly jobs: JobsFacade<P, ServiceClient<P>>;
  /** Publishes an event that was prepared before, byte for byte. */
  readonly publishPrepared: PublishPrepared;
  /** Stops every listener and consumer of events; what has begun ends first. The service goes on. */
  stopEventListeners(options?: StopOptions): Promise<void>;
  readonly health: Health;
  /** Puts middleware around every handler; before `start()`. */
  use(middleware: ServiceMiddleware): void;
  /** Puts middleware around every call that the service makes. */
  useClient(middleware: ClientMiddleware): void;
  /** Goes live: subscribes everything that has a handler. Repeated calls share one promise. */
  start(options?: WaitOptions): Promise<void>;
  /** `start()`, then waits for the end of the connection; throws what ended it. Always ends in `stop()`. */
  wait(options?: WaitOptions): Promise<void>;
  /** Drains and closes, in order, within one budget. Idempotent; safe at any time. */
  stop(options?: StopOptions): Promise<void>;
} & {};
