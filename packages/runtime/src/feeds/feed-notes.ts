import {
  controlSubject,
  encodeFeedControl,
  type FeedNote,
  type FeedNoteKind,
  type FeedReceiver,
} from "@trellis/protocol";
import type { Link } from "../connect/link.ts";
import type { ProviderRoute } from "../connect/routes.ts";
import { afterTick } from "../lifecycle/tick.ts";

/** Whom a note is about, and goes to. */
export interface NotedSession {
  /** 16 bytes. */
  readonly id: Uint8Array;
  /** The provider's connection. */
  readonly connection: string;
  /** The route that it was opened under. */
  readonly route: ProviderRoute;
  /** Where "gone" and "nobody there" are to be said. */
  readonly subject: string;
  /** Missing where nothing is known of the session but that it is over. */
  readonly receiver: FeedReceiver | undefined;
}

interface PendingNote {
  readonly session: NotedSession;
  readonly kind: FeedNoteKind;
  readonly nonce: number;
}

interface Batch {
  readonly route: ProviderRoute;
  readonly connection: string;
  readonly notes: PendingNote[];
  /** Sessions with a `state` in the batch: its totals are read when it is sent, one says it all. */
  readonly stated: Set<NotedSession>;
}

/** Notes of one control frame: 41 bytes each, which fits the smallest limit that a broker has. */
const maxNotes = 512;
/** Sessions that were left while the socket was down; beyond it their providers find out by themselves. */
const maxUnsent = 10_000;

/** What consumers say to their providers: the notes of one turn to one connection share a frame. */
export class FeedNotes {
  readonly #link: Link;
  readonly #batches = new Map<string, Batch>();
  /** Of the sessions that were left while the socket was down. */
  #unsent: NotedSession[] = [];
  #scheduled = false;

  constructor(link: Link) {
    this.#link = link;
  }

  add(session: NotedSession, kind: FeedNoteKind, nonce = 0): void {
    const route = this.routeOf(session);
    const key = `${route.deployment} ${session.connection} ${route.epoch}`;
    let batch = this.#batches.get(key);
    if (batch === undefined) {
      batch = { route, connection: session.connection, notes: [], stated: new Set() };
      this.#batches.set(key, batch);
    }
    if (kind === "state") {
      if (batch.stated.has(session)) return;
      batch.stated.add(session);
    }
    batch.notes.push({ session, kind, nonce });
    if (this.#scheduled) return;
    this.#scheduled = true;
    afterTick(() => this.flush());
  }

  /** The newest route to a session's provider: it shows the authorization that we have now. */
  routeOf({ route }: NotedSession): ProviderRoute {
    return this.#link.routes.routeTo(route.deployment) ?? route;
  }

  /** Sends what waits, now. */
  flush(): void {
    this.#scheduled = false;
    for (const { route, connection, notes } of this.#batches.values()) {
      for (let at = 0; at < notes.length; at += maxNotes) {
        this.#send(route, connection, notes.slice(at, at + maxNotes));
      }
    }
    this.#batches.clear();
  }

  /** The socket is back. But for the closes, what could not be sent is said anew by those whom it concerns. */
  onUp(): void {
    const left = this.#unsent;
    this.#unsent = [];
    for (const session of left) this.add(session, "close");
  }

  #send(route: ProviderRoute, connection: string, notes: readonly PendingNote[]): void {
    const { broker, clock, platform } = this.#link;
    const subject = controlSubject(route.deployment, connection);
    const reply = notes.find(({ kind }) => kind !== "close")?.session.subject ?? "";
    const { epoch, digest } = route;
    const frame = encodeFeedControl(platform.port, {
      header: { epoch, digest, counter: route.nextCounter(), issuedAt: clock.now() },
      notes: notes.map(noteOf),
      subject,
      reply,
      key: route.keys.request,
    });
    if (broker.publish(subject, frame, reply === "" ? undefined : reply)) return;
    for (const { kind, session } of notes) {
      if (kind === "close" && this.#unsent.length < maxUnsent) this.#unsent.push(session);
    }
  }
}

function noteOf({ session, kind, nonce }: PendingNote): FeedNote {
  const { received, consumed } = session.receiver?.report() ?? nothing;
  return { session: session.id, kind, nonce, received, consumed };
}

const nothing = { received: 0, consumed: 0 };
