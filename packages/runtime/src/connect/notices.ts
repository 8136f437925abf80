import type { Msg } from "@nats-io/nats-core";
import {
  CONNECTION_END,
  type ConnectionEnd,
  type IssuerSet,
  NOTICE_FILTER,
  NOTICES_GET_SUBJECT,
  type Port,
  REVOCATION,
  type Revocation,
  ROUTE_NOTICE,
  type RouteNotice,
  type Signed,
  type StatementKind,
  verifyStatement,
} from "@trellis/protocol";
import type { Static, TObject } from "typebox";
import { sleep } from "../lifecycle/backoff.ts";
import type { Logger } from "../logging/logger.ts";
import type { Broker } from "./broker.ts";
import type { DirectGet, StoredMessage } from "./direct-get.ts";
import { readSigned } from "./read-signed.ts";
import type { ServerClock } from "./server-clock.ts";

/** What a connection does with the platform's signed notices. */
export interface NoticeListener {
  onRevocation(revocation: Revocation): void;
  onConnectionEnd(end: ConnectionEnd): void;
  onRoute(route: RouteNotice): void;
}

export interface NoticeReaderOptions {
  readonly port: Port;
  readonly broker: Broker;
  readonly directGet: DirectGet;
  readonly clock: ServerClock;
  readonly log: Logger;
  readonly listener: NoticeListener;
  /** The issuers that count at the moment. */
  issuers(): IssuerSet;
}

const storedFilter = "notice.>";
const batchSize = 256;
const probeIntervalMs = 15_000;
const warnIntervalMs = 10_000;
const maxHeard = 10_000;

/**
 * Keeps a connection's picture of revocations, ended connections and rolled routes.
 *
 * Invariants:
 * N1. It subscribes to the live notices before it reads the stored ones, so none falls between.
 * N2. `ready` holds only once everything stored was read under the present socket; every reconnect proves it
 *     anew.
 * N3. `blindFor` grows whenever the store cannot be read: silence is not taken for "nothing happened". The
 *     store is the broker's; the control plane may be down without anybody going blind.
 * N4. Only what an issuer signed counts; a deleted or invalid record never un-revokes anything.
 */
export class NoticeReader {
  readonly #options: NoticeReaderOptions;
  readonly #stopping = new AbortController();
  #nextSequence = 1;
  #readGeneration = 0;
  #sightedAt: number;
  #reading: Promise<void> | undefined;
  /** Notices that verified, payload by signature: one that comes again costs no second look at its signature. */
  readonly #heard = new Map<string, string>();
  /** Notices that did not verify, so far. */
  #ignored = 0;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(options: NoticeReaderOptions) {
    this.#options = options;
    this.#sightedAt = options.clock.monotonic();
  }

  /** Subscribes and reads everything stored; rejects when the store cannot be read. */
  async start(): Promise<void> {
    this.#options.broker.subscribe(NOTICE_FILTER, {
      onMessage: (message) => this.#onLive(message),
      onDenied: (error) => this.#options.log.error({ err: error }, "The platform's notices are not readable"),
    });
    await this.readUp();
    void this.#probe();
  }

  get ready(): boolean {
    return this.#readGeneration === this.#options.broker.generation;
  }

  /** Milliseconds since the store was last read or seen to hold nothing new. */
  get blindFor(): number {
    return this.#options.clock.monotonic() - this.#sightedAt;
  }

  /** Reads what was stored since the last look; one reading at a time. */
  readUp(): Promise<void> {
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Takes in a notice that was read for a reason of its own; true when it verified. */
  takeStored(message: StoredMessage): boolean {
    return this.#take(message.subject, message.data);
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #readAll(): Promise<void> {
    const { broker, directGet, clock } = this.#options;
    const generation = broker.generation;
    for (let complete = false; !complete; ) {
      const askedAt = clock.monotonic();
      const answer = await directGet.batch(NOTICES_GET_SUBJECT, {
        seq: this.#nextSequence,
        batch: batchSize,
        nextBySubject: storedFilter,
      });
      for (const { subject, sequence, data } of answer.messages) {
        this.#take(subject, data);
        this.#nextSequence = Math.max(this.#nextSequence, sequence + 1);
      }
      this.#sightedAt = askedAt;
      complete = answer.complete;
    }
    this.#readGeneration = generation;
  }

  /** Looks at the store now and then: a live notice that got lost is found here at the latest. */
  async #probe(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await sleep(probeIntervalMs, { signal, background: true });
        if (this.#options.broker.up) await this.readUp();
      } catch (error) {
        if (!signal.aborted) this.#options.log.warn({ err: error }, "Could not read the platform's notices");
      }
    }
  }

  #onLive(message: Msg): void {
    this.#take(message.subject.replace(/^ctl\./, ""), message.data);
  }

  #take(subject: string, data: Uint8Array): boolean {
    const { listener, port } = this.#options;
    const signed = readSigned(port, data);
    if (signed === undefined) return false;
    if (this.#heard.get(signed.signature) === signed.payload) return true;
    switch (subject.split(".")[1]) {
      case "revocation":
        return this.#tell(this.#verify(REVOCATION, signed), (it) => listener.onRevocation(it));
      case "connection-end":
        return this.#tell(this.#verify(CONNECTION_END, signed), (it) => listener.onConnectionEnd(it));
      case "route":
        return this.#tell(this.#verify(ROUTE_NOTICE, signed), (it) => listener.onRoute(it));
      default:
        return false;
    }
  }

  #tell<T>(notice: T | undefined, listener: (notice: T) => void): boolean {
    if (notice !== undefined) listener(notice);
    return notice !== undefined;
  }

  #verify<S extends TObject>(kind: StatementKind<S>, signed: Signed): Static<S> | undefined {
    const { port, issuers, clock, log } = this.#options;
    const verified = verifyStatement(port, { ...kind, signed, issuers: issuers(), now: clock.now() });
    if (verified.isOk()) {
      if (this.#heard.size >= maxHeard) this.#heard.clear();
      this.#heard.set(signed.signature, signed.payload);
      return verified.value;
    }
    this.#ignored += 1;
    // Whoever may read the store can have notices delivered under other subjects: that must not fill the log.
    if (clock.monotonic() - this.#warnedAt < warnIntervalMs) return undefined;
    this.#warnedAt = clock.monotonic();
    const { reason } = verified.error;
    log.warn(
      { label: kind.label, reason, ignored: this.#ignored },
      "Notices did not verify and were ignored",
    );
    return undefined;
  }
}
