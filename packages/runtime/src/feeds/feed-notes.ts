import { controlSubject, encodeFeedControl, type FeedNote, type FeedNoteKind } from "@trellis/protocol";
import type { Link } from "../connect/link.ts";
import type { ProviderRoute } from "../connect/routes.ts";
import { afterTick } from "../lifecycle/tick.ts";
import type { Opened } from "./consumer-session.ts";

/** What to say of a session; the totals are read when it is said. */
export interface PendingNote {
  readonly kind: FeedNoteKind;
  readonly nonce?: number;
  /** The session's subject: where "gone" and "nobody there" are to be said. */
  readonly subject: string;
}

/** A session of which nothing is known here: all that can be said is that it is over. */
export type Unknown = Pick<Opened, "id" | "connection" | "route">;

interface Batch {
  readonly route: ProviderRoute;
  readonly connection: string;
  readonly entries: { readonly session: Opened | Unknown; readonly note: PendingNote }[];
  /** Sessions with a `state` in the batch: it says everything by then. */
  readonly stated: Set<Opened | Unknown>;
}

/** Notes of one control frame: 41 bytes each, which fits the smallest limit that a broker has. */
const maxNotes = 512;

/** What consumers say to their providers: the notes of one turn to one connection share a frame. */
export class FeedNotes {
  readonly #link: Link;
  readonly #batches = new Map<string, Batch>();
  #scheduled = false;

  constructor(link: Link) {
    this.#link = link;
  }

  add(session: Opened | Unknown, note: PendingNote): void {
    const route = this.#route(session.route);
    const key = `${route.deployment} ${session.connection} ${route.epoch}`;
    let batch = this.#batches.get(key);
    if (batch === undefined) {
      batch = { route, connection: session.connection, entries: [], stated: new Set() };
      this.#batches.set(key, batch);
    }
    if (note.kind === "state") {
      if (batch.stated.has(session)) return;
      batch.stated.add(session);
    }
    batch.entries.push({ session, note });
    if (this.#scheduled) return;
    this.#scheduled = true;
    afterTick(() => this.flush());
  }

  /** Sends what waits, now. While the socket is down it is dropped: a reconnect says everything anew. */
  flush(): void {
    this.#scheduled = false;
    for (const batch of this.#batches.values()) {
      for (let at = 0; at < batch.entries.length; at += maxNotes) {
        this.#send(batch, batch.entries.slice(at, at + maxNotes));
      }
    }
    this.#batches.clear();
  }

  /** The newest route to the same provider: it shows the authorization that we have now. */
  #route(opened: ProviderRoute): ProviderRoute {
    return this.#link.routes.routeTo(opened.deployment) ?? opened;
  }

  #send({ route, connection }: Batch, entries: Batch["entries"]): void {
    const { broker, clock, platform } = this.#link;
    const subject = controlSubject(route.deployment, connection);
    const reply = entries.find(({ note }) => note.kind !== "close")?.note.subject ?? "";
    const frame = encodeFeedControl(platform.port, {
      header: {
        epoch: route.epoch,
        digest: route.digest,
        counter: route.nextCounter(),
        issuedAt: clock.now(),
      },
      notes: entries.map(({ session, note }) => noteOf(session, note)),
      subject,
      reply,
      key: route.keys.request,
    });
    broker.publish(subject, frame, reply === "" ? undefined : reply);
  }
}

function noteOf(session: Opened | Unknown, { kind, nonce = 0 }: PendingNote): FeedNote {
  const { received, consumed } = "receiver" in session ? session.receiver.report() : nothing;
  return { session: session.id, kind, nonce, received, consumed };
}

const nothing = { received: 0, consumed: 0 };
