import type {
  AnyParticipant,
  EventAction,
  Facade,
  FacadeKind,
  InputOf,
  OwnedEvents,
} from "@trellis/contract";
import type {
  AuthError,
  BusyError,
  CancelledError,
  NotFoundError,
  PreparedEvent,
  TransportError,
  UnavailableError,
  ValidationError,
} from "@trellis/protocol";
import type { AsyncResult, Result, UnexpectedError } from "@trellis/result";
import type { PublishedEvent, PublishOptions } from "./event-publisher.ts";
import type { PrepareOptions } from "./prepare-event.ts";

/** What the publishing of an event can end with. */
export type PublishErrors =
  | ValidationError
  | AuthError
  | TransportError
  | CancelledError
  | UnavailableError
  | BusyError
  | UnexpectedError;

/** One event, to those who publish it. */
export interface EventPublishing<Payload> {
  /** Makes an event that can be kept and published later; nothing is sent. */
  prepare(payload: Payload, options?: PrepareOptions): Result<PreparedEvent, ValidationError>;
  /** Prepares, signs and publishes; the result is there once the broker has stored the event. */
  publish(
    payload: Payload,
    options?: PrepareOptions & PublishOptions,
  ): AsyncResult<PublishedEvent, PublishErrors>;
}

/** Publishes a prepared event, byte for byte; again after an unknown outcome, or from another replica. */
export interface PublishPrepared {
  (event: PreparedEvent, options?: PublishOptions): AsyncResult<PublishedEvent, PublishErrors>;
}

/** What the events of a participant's own APIs carry, by their dotted names. */
export type EventPayloads<P extends AnyParticipant> =
  OwnedEvents<P> extends infer Events
    ? { [Name in keyof Events]: Events[Name] extends EventAction<infer Payload> ? InputOf<Payload> : never }
    : never;

/**
 * As `event.<group>.<leaf>.prepare`, by dotted name, for code that gets it from elsewhere; the payload is typed by the
 * name. One that is none of the participant's events: `NotFoundError`.
 */
export interface PrepareByName<Payloads> {
  <Name extends keyof Payloads & string>(
    name: Name,
    payload: Payloads[Name],
    options?: PrepareOptions,
  ): Result<PreparedEvent, ValidationError | NotFoundError>;
}

/** As `event.<group>.<leaf>.publish`, by dotted name; see {@link PrepareByName}. */
export interface PublishByName<Payloads> {
  <Name extends keyof Payloads & string>(
    name: Name,
    payload: Payloads[Name],
    options?: PrepareOptions & PublishOptions,
  ): AsyncResult<PublishedEvent, PublishErrors | NotFoundError>;
}

/** How an event looks to its publishers. */
interface Publishes extends FacadeKind {
  readonly entry: this["action"] extends EventAction<infer P> ? EventPublishing<InputOf<P>> : never;
}

/** `client.event`: the events that a participant owns, by group and leaf. */
export type EventPublishFacade<P extends AnyParticipant> = Facade<OwnedEvents<P>, Publishes>;
