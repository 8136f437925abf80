import type { NatsConnection } from "@nats-io/nats-core";
import type { Port } from "@trellis/protocol";
import { Broker } from "../connect/broker.ts";
import { Inbox } from "../connect/inbox.ts";
import type { LinkListener } from "../connect/link.ts";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { TimerWheel } from "../lifecycle/timer-wheel.ts";
import type { Logger } from "../logging/logger.ts";
import { BrokerRequests, type RequestLink } from "./broker-requests.ts";

export interface PlainLinkInput {
  readonly port: Port;
  readonly log: Logger;
  /** Names the inbox: answers come below `_INBOX.<connection>.j`, which the connection must be allowed to hear. */
  readonly connection: string;
  readonly clock?: Clock;
}

/**
 * A link over a broker connection that was opened elsewhere: for the platform's own processes and for tools, which use
 * streams without being a participant. Closing it closes the connection.
 */
export class PlainLink implements RequestLink {
  readonly platform: { readonly port: Port };
  readonly clock: Clock;
  readonly log: Logger;
  readonly nats: NatsConnection;
  readonly broker: Broker;
  readonly answers: Inbox;
  readonly wheel = new TimerWheel();
  readonly requests: BrokerRequests;
  readonly #listeners = new Set<LinkListener>();
  #closed: Promise<void> | undefined;

  constructor(nats: NatsConnection, { port, log, connection, clock = systemClock }: PlainLinkInput) {
    this.platform = { port };
    this.clock = clock;
    this.log = log;
    this.nats = nats;
    const events = {
      onDown: () => this.#tell((listener) => listener.onDown?.()),
      onDialing: () => {},
      onRefused: () => {},
      onUp: () => this.#tell((listener) => listener.onUp?.()),
      onClosed: (error: Error | undefined) =>
        void this.#end(error === undefined ? "stopped" : "connection closed"),
    };
    this.broker = new Broker(nats, events, log);
    this.answers = new Inbox(port, connection, "j");
    this.answers.listen(this.broker, (error) => log.error({ err: error }, "The broker refused the inbox"));
    this.requests = new BrokerRequests(this);
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  listen(listener: LinkListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): Promise<void> {
    return this.#end("stopped");
  }

  #end(reason: string): Promise<void> {
    this.#closed ??= this.#shut(reason);
    return this.#closed;
  }

  async #shut(reason: string): Promise<void> {
    this.#tell((listener) => listener.onClosed?.(reason));
    this.wheel.stop();
    await this.broker.close();
  }

  #tell(call: (listener: LinkListener) => void): void {
    for (const listener of [...this.#listeners]) call(listener);
  }
}
