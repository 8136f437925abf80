import type { Msg } from "@nats-io/nats-core";
import {
  AuthError,
  decodeFeedControl,
  encodeFeedChallenge,
  type FeedControlFrame,
  type FeedNote,
  isFeedControl,
  toHex,
  verifyFeedControl,
} from "@trellis/protocol";
import type { CallerEpoch, CallerSession } from "../connect/caller-session.ts";
import type { Link } from "../connect/link.ts";
import { findCaller, seesRevocations, senderOf, staleness } from "../rpc/authenticate-frame.ts";
import type { ControlTaker } from "../rpc/control-receiver.ts";
import type { MissingConsumers } from "./missing-consumers.ts";
import type { ProducerSession } from "./producer-session.ts";
import type { SessionTable } from "./session-table.ts";

interface Sender {
  readonly session: CallerSession;
  readonly epoch: CallerEpoch;
}

/**
 * Takes what consumers say about their sessions. A note reaches only sessions of the connection that said it; about
 * any other it learns the same as about one that never was: that it is gone.
 */
export class FeedControlReceiver implements ControlTaker {
  readonly #link: Link;
  readonly #sessions: SessionTable;
  readonly #missing: MissingConsumers;

  constructor(link: Link, sessions: SessionTable, missing: MissingConsumers) {
    this.#link = link;
    this.#sessions = sessions;
    this.#missing = missing;
  }

  claims(data: Uint8Array): boolean {
    return isFeedControl(data);
  }

  take(message: Msg): void {
    const frame = decodeFeedControl(this.#link.platform.port, message.data);
    if (frame === undefined) return;
    const { callers } = this.#link;
    const known = callers.get(frame.digestText);
    const { subject, reply = "" } = message;
    if (known !== undefined) return this.#authenticate({ subject, reply }, frame, known);
    // Whoever has a session here is known; a new digest is his newest authorization.
    if (!seesRevocations(this.#link)) return;
    const data = message.data.slice();
    void callers.load(frame.digestText, senderOf(reply)).then((session) => {
      const again = decodeFeedControl(this.#link.platform.port, data);
      if (again !== undefined && session !== undefined)
        this.#authenticate({ subject, reply }, again, session);
    });
  }

  #authenticate(
    { subject, reply }: { readonly subject: string; readonly reply: string },
    frame: FeedControlFrame,
    session: CallerSession,
  ): void {
    const found = findCaller(this.#link, frame, session);
    if (found.kind !== "session") return;
    const { port } = this.#link.platform;
    if (!verifyFeedControl(port, { frame, subject, reply, key: found.epoch.keys.request })) return;
    const stale = staleness(this.#link, frame, found);
    if (stale === "outdated" || stale === "replayed") return;
    this.#missing.heard(found.session.authorization.connection);
    const gone: Uint8Array[] = [];
    for (const note of frame.notes) {
      const own = this.#sessionOf(found.session, note);
      if (own === undefined) {
        if (note.kind !== "close") gone.push(note.session);
      } else if (stale !== undefined) own.refuse(new AuthError({ reason: stale }));
      else this.#tell(own, note, found.session);
    }
    if (gone.length > 0) this.#sayGone(found, gone, reply);
  }

  #sessionOf(caller: CallerSession, note: FeedNote): ProducerSession | undefined {
    const session = this.#sessions.get(toHex(note.session));
    return session?.connection === caller.authorization.connection ? session : undefined;
  }

  #tell(session: ProducerSession, note: FeedNote, caller: CallerSession): void {
    // After a refresh the caller shows its newer authorization: from now on that one counts.
    if (caller.authorization.notBefore >= session.session.authorization.notBefore) session.session = caller;
    if (note.kind !== "close" && !caller.allows(session.served.subject)) {
      const message = `The caller's grants do not include ${session.served.feed.name} any more.`;
      return session.refuse(new AuthError({ reason: "not_granted", message }));
    }
    session.onNote(note);
  }

  #sayGone({ session, epoch }: Sender, sessions: readonly Uint8Array[], reply: string): void {
    if (!reply.startsWith(`${session.authorization.inbox}.r.`)) return;
    const { platform, broker } = this.#link;
    const frame = encodeFeedChallenge(platform.port, {
      kind: "gone",
      epoch: epoch.number,
      nonce: 0,
      sessions,
      subject: reply,
      key: epoch.keys.reply,
    });
    broker.publish(reply, frame);
  }
}
