import type {
  AnyParticipant,
  Facade,
  FacadeKind,
  FeedAction,
  InputOf,
  OutputOf,
  OwnedFeeds,
  UsedFeeds,
} from "@trellis/contract";
import type { FeedHandle } from "./feed-handler.ts";
import type { FeedOpener } from "./feed-stream.ts";

/** How a feed looks to its consumers. */
interface Openers extends FacadeKind {
  readonly entry: this["action"] extends FeedAction<infer I, infer V, infer E>
    ? FeedOpener<InputOf<I>, OutputOf<V>, InstanceType<E>>
    : never;
}

/** How a feed looks to its provider. The producer gets the input decoded and gives the items to encode. */
interface Handles<Client> extends FacadeKind {
  readonly entry: this["action"] extends FeedAction<infer I, infer V, infer E>
    ? FeedHandle<OutputOf<I>, InputOf<V>, InstanceType<E>, Client>
    : never;
}

/** `client.feed`: the feeds that a participant uses, by group and leaf. */
export type FeedOpenFacade<P extends AnyParticipant> = Facade<UsedFeeds<P>, Openers>;

/** `service.handle.feed`: the feeds that a participant owns, by group and leaf. */
export type FeedHandleFacade<P extends AnyParticipant, Client> = Facade<OwnedFeeds<P>, Handles<Client>>;
