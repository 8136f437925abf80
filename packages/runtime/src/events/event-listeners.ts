import type {
  AnyParticipant,
  EventAction,
  Facade,
  FacadeKind,
  InputOf,
  OutputOf,
  OwnedEvents,
  ParamName,
  SchemaLike,
  UsedEvents,
} from "@trellis/contract";
import type { TrellisError } from "@trellis/protocol";
import type { AsyncResult } from "@trellis/result";
import type { EphemeralListenOptions, Listening } from "./ephemeral-listeners.ts";
import type { EventHandler } from "./event-handler.ts";

/** Listens through a consumer that the participant declares: durable, shared by its replicas. */
export interface GroupListenOptions<Group extends string> {
  /** The consumer's alias. May be left out when only one consumer of the participant takes the event. */
  readonly group?: Group;
}

/** Values of subject parameters to filter by: those of the payload's members that can be parameters. */
export type ParamFilter<P extends SchemaLike> = {
  readonly [K in ParamName<P>]?: InputOf<P>[K & keyof InputOf<P>];
};

/** Listens to one event without anything durable: `listen(handler, { mode: "ephemeral" })`. */
export interface EphemeralListen<Payload, Params, Client> {
  /**
   * Handles events in this process alone, one after another; nothing is retried, and what was published while it did
   * not listen is missed unless `replay` says otherwise. Resolves when it hears.
   */
  listen(
    handler: EventHandler<Payload, Client>,
    options: EphemeralListenOptions<Params>,
  ): AsyncResult<Listening, TrellisError>;
}

/** Registers the handler of one event. */
export interface EventListen<Payload, Group extends string, Client, Params = object> {
  /** Handles the event in a declared consumer; before `start()`. A second handler in one consumer throws. */
  listen(handler: EventHandler<Payload, Client>, options?: GroupListenOptions<Group>): void;
  /**
   * Handles events in this process alone, one after another; nothing is retried. Resolves when it hears. At any time.
   */
  listen(
    handler: EventHandler<Payload, Client>,
    options: EphemeralListenOptions<Params>,
  ): AsyncResult<Listening, TrellisError>;
}

/** One function for both ways of listening. */
export function listenBoth<Client>(ways: {
  durable(handler: EventHandler<unknown, Client>, options: GroupListenOptions<string>): void;
  ephemeral(
    handler: EventHandler<unknown, Client>,
    options: EphemeralListenOptions,
  ): AsyncResult<Listening, TrellisError>;
}): EventListen<unknown, string, Client>["listen"] {
  function listen(handler: EventHandler<unknown, Client>, options?: GroupListenOptions<string>): void;
  function listen(
    handler: EventHandler<unknown, Client>,
    options: EphemeralListenOptions<object>,
  ): AsyncResult<Listening, TrellisError>;
  function listen(
    handler: EventHandler<unknown, Client>,
    options: GroupListenOptions<string> | EphemeralListenOptions<object> = {},
  ): AsyncResult<Listening, TrellisError> | undefined {
    if ("mode" in options) return ways.ephemeral(handler, { ...options, params: { ...options.params } });
    ways.durable(handler, options);
    return undefined;
  }
  return listen;
}

/** How an event looks to those who handle it. */
interface Listens<Group extends string, Client> extends FacadeKind {
  readonly entry: this["action"] extends EventAction<infer P>
    ? EventListen<OutputOf<P>, Group, Client, ParamFilter<P>>
    : never;
}

/** How an event looks to an application, which has no declared consumers to listen by. */
interface Hears<Client> extends FacadeKind {
  readonly entry: this["action"] extends EventAction<infer P>
    ? EphemeralListen<OutputOf<P>, ParamFilter<P>, Client>
    : never;
}

/** `client.event` of an application: the events that it uses, to be listened to. */
export type EventHearFacade<P extends AnyParticipant, Client> = Facade<UsedEvents<P>, Hears<Client>>;

/** Events that a participant can listen to: those that it uses, and its own. A used one hides an own one of its name. */
type Listenable<P extends AnyParticipant> = UsedEvents<P> & Omit<OwnedEvents<P>, keyof UsedEvents<P>>;

/** `service.event`: events by group and leaf, to be listened to. */
export type EventListenFacade<P extends AnyParticipant, Client> = Facade<
  Listenable<P>,
  Listens<keyof P["consumers"] & string, Client>
>;
