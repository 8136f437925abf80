import {
  CancelledError,
  type FeedChallenge,
  FeedError,
  type FeedOpened,
  toHex,
  UnavailableError,
  ValidationError,
} from "@trellis/protocol";
import { newReplyScope } from "../connect/inbox.ts";
import type { Link } from "../connect/link.ts";
import type { ProviderRoute } from "../connect/routes.ts";
import { Sweeper } from "../lifecycle/sweeper.ts";
import type { CallRequest, RpcClient } from "../rpc/rpc-client.ts";
import { withClientSpan } from "../telemetry/rpc-spans.ts";
import {
  ConsumerSession,
  type ConsumerSessionOwner,
  type FeedRequest,
  type OpenedSession,
} from "./consumer-session.ts";
import { FeedNotes } from "./feed-notes.ts";
import { feedOpenAction } from "./feed-open-action.ts";

const sweepMs = 1_000;

/**
 * The consuming side of feeds over one link. A session survives a lost socket, its own or the provider's: after the
 * reconnect it says what it has, and the provider sends the rest again.
 *
 * Invariants:
 * F4. Every session ends once, and leaves nothing behind: no subject, listener or timer.
 * F5. Items come in order, each once; when that cannot be kept, the feed ends with a reason.
 */
export class FeedClient implements ConsumerSessionOwner {
  readonly link: Link;
  readonly notes: FeedNotes;
  readonly #rpc: RpcClient;
  readonly #traced: boolean;
  /** Begun and not ended, opened or not. */
  readonly #sessions = new Set<ConsumerSession>();
  readonly #byId = new Map<string, ConsumerSession>();
  readonly #sweeper: Sweeper;

  constructor(link: Link, rpc: RpcClient, { traced }: { readonly traced: boolean }) {
    this.link = link;
    this.#rpc = rpc;
    this.#traced = traced;
    this.notes = new FeedNotes(link);
    this.#sweeper = new Sweeper(sweepMs, (late) => this.#sweep(late));
    link.listen({
      onUp: () => this.#onUp(),
      onSession: () => this.#showAuthorization(),
      onConnectionEnd: ({ connection }) => this.#onProviderLost(connection),
      onClosed: (reason) => this.#onClosed(reason),
    });
  }

  /** Sessions that have begun and not ended. */
  get size(): number {
    return this.#sessions.size;
  }

  /** A feed that is opened when its first item is asked for. */
  feed(request: FeedRequest): ConsumerSession {
    return new ConsumerSession(this, request);
  }

  open(session: ConsumerSession): void {
    const { replies, isClosed } = this.link;
    if (isClosed) return session.abort(new UnavailableError({ reason: "closed" }));
    this.#sessions.add(session);
    // A scope of its own: who is told this subject can guess no other.
    session.subject = replies.open(session, newReplyScope(this.link.platform.port));
    let route: ProviderRoute | undefined;
    const { action: feed, input, options, origin } = session.request;
    const request: CallRequest = {
      action: feedOpenAction(feed),
      input: { input: feed.input === undefined ? null : input, frames: session.subject },
      options,
      origin,
      onRoute: (under) => {
        route = under;
      },
    };
    const call = (made: CallRequest) => this.#rpc.call(made);
    const opening = this.#traced ? withClientSpan(request, call) : call(request);
    void opening.toPromise().then((result) => {
      if (result.isErr()) return session.fail(ofInput(result.error));
      if (route !== undefined) this.#onOpened(session, result.value as FeedOpened, route);
    });
  }

  #onOpened(session: ConsumerSession, opened: FeedOpened, route: ProviderRoute): void {
    session.onOpened(opened, route);
    if (session.isOver) return;
    this.#byId.set(opened.session, session);
    this.#sweeper.start();
  }

  onEnded(session: ConsumerSession): void {
    this.#sessions.delete(session);
    if (session.opened !== undefined) this.#byId.delete(session.opened.idText);
    this.link.replies.release(session.subject);
  }

  /** A provider speaks only of sessions that it has itself. */
  onChallenge({ connection, route }: OpenedSession, { kind, nonce, sessions }: FeedChallenge): void {
    for (const id of sessions) {
      const session = this.#byId.get(toHex(id));
      const opened = session?.opened;
      if (session !== undefined && opened?.connection === connection) {
        if (kind === "gone") session.fail(new FeedError({ reason: "delivery_gap" }));
        else {
          session.heard();
          this.notes.add(opened, "answer", nonce);
        }
      } else if (kind === "challenge") {
        // We left it, and that got lost; `id` is a view of a message.
        const left = { id: id.slice(), connection, route, subject: "", receiver: undefined };
        this.notes.add(left, "close");
      }
    }
  }

  #onProviderLost(connection: string): void {
    for (const session of this.#byId.values()) {
      if (session.opened?.connection === connection) session.onAbsent();
    }
  }

  #onUp(): void {
    this.notes.onUp();
    for (const session of this.#byId.values()) session.resume();
  }

  /** Providers go by the authorization that they saw last; quiet sessions would show the new one too late. */
  #showAuthorization(): void {
    for (const session of this.#byId.values()) session.report();
  }

  #onClosed(reason: string): void {
    this.#sweeper.stop();
    for (const session of [...this.#sessions]) session.abort(new CancelledError({ reason }));
    // The socket is about to close: what was just said must be out before.
    this.notes.flush();
  }

  #sweep(late: number): boolean {
    const now = this.link.clock.monotonic();
    const excused = this.link.broker.up ? late : late + sweepMs;
    const invalid = this.link.unavailableBecause;
    for (const session of [...this.#byId.values()]) {
      if (invalid !== undefined) session.abort(invalidated(invalid));
      if (excused > 0) session.excuse(excused);
      if (this.link.broker.up) session.look(now);
    }
    return this.#byId.size > 0;
  }
}

function invalidated(reason: string): UnavailableError {
  return new UnavailableError({ reason: "invalidated", message: `The feed has ended: ${reason}` });
}

/** The request that opens a feed holds its input as a member: a caller knows the places within. */
function ofInput<E>(error: E): E | ValidationError {
  if (!(error instanceof ValidationError)) return error;
  const errors = error.errors.map(({ path, message }) => ({
    path: path.replace(/^\/input(?=\/|$)/, ""),
    message,
  }));
  return new ValidationError({ errors });
}
