import type {
  AnyParticipant,
  EventAction,
  Facade,
  FacadeKind,
  OutputOf,
  OwnedEvents,
  UsedEvents,
} from "@trellis/contract";
import type { EventHandler } from "./event-handler.ts";

/** Listens through a consumer that the participant declares: durable, shared by its replicas. */
export interface GroupListenOptions<Group extends string> {
  /** The consumer's alias. May be left out when only one consumer of the participant takes the event. */
  readonly group?: Group;
}

/** Registers the handler of one event. */
export interface EventListen<Payload, Group extends string, Client> {
  /** Handles the event in a declared consumer; before `start()`. A second handler in one consumer throws. */
  listen(handler: EventHandler<Payload, Client>, options?: GroupListenOptions<Group>): void;
}

/** How an event looks to those who handle it. */
interface Listens<Group extends string, Client> extends FacadeKind {
  readonly entry: this["action"] extends EventAction<infer P>
    ? EventListen<OutputOf<P>, Group, Client>
    : never;
}

/** Events that a participant can listen to: those that it uses, and its own. A used one hides an own one of its name. */
type Listenable<P extends AnyParticipant> = UsedEvents<P> & Omit<OwnedEvents<P>, keyof UsedEvents<P>>;

/** `service.event`: events by group and leaf, to be listened to. */
export type EventListenFacade<P extends AnyParticipant, Client> = Facade<
  Listenable<P>,
  Listens<keyof P["consumers"] & string, Client>
>;
