import type { AnyParticipant, ConsumerResource, EventAction } from "@trellis/contract";
import { type ConsumerBinding, TransportError } from "@trellis/protocol";
import type { HealthReport } from "../health/health.ts";
import type { BrokerRequests } from "../jetstream/broker-requests.ts";
import type { Deadline } from "../lifecycle/deadline.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import { boundConsumer } from "./consumer-binding.ts";
import type { AskForListener } from "./ephemeral-listener.ts";
import { EphemeralListeners, unasked } from "./ephemeral-listeners.ts";
import { type ConsumerLink, EventConsumer } from "./event-consumer.ts";
import { eventFacade } from "./event-facade.ts";
import type { EventHandler } from "./event-handler.ts";
import { type EventListen, listenBoth } from "./event-listeners.ts";
import { EventVerifier } from "./event-verifier.ts";
import type { EventListener } from "./event-work.ts";

export interface ListeningSurfaceOptions<Client> {
  /** Asks the platform for an ephemeral consumer. */
  readonly ask?: AskForListener;
  readonly participant: AnyParticipant;
  readonly link: ConsumerLink;
  readonly requests: BrokerRequests;
  readonly traced: boolean;
  /** What the consumer of an alias is bound to; `undefined` when it is not. */
  binding(alias: string): ConsumerBinding | undefined;
  /** The client that a handler is given. */
  clientFor(origin: CallOrigin): Client;
}

/** The events that a service handles: registration, then one consumer for each alias with a handler. */
export class ListeningSurface<Client> {
  readonly facade: object;
  readonly #options: ListeningSurfaceOptions<Client>;
  readonly #listeners = new Map<string, EventListener[]>();
  readonly #consumers: EventConsumer[] = [];
  readonly #verifier: EventVerifier;
  readonly #ephemeral: EphemeralListeners;
  #started = false;

  constructor(options: ListeningSurfaceOptions<Client>) {
    this.#options = options;
    this.#verifier = new EventVerifier(options.link);
    const make = (action: EventAction): EventListen<unknown, string, Client> => ({
      listen: listenBoth({
        ephemeral: (handler, options) => this.#ephemeral.listen(this.#listener(action, handler), options),
        durable: (handler, { group }) => this.#register(action, handler, group),
      }),
    });
    const { link, traced, ask = unasked } = options;
    this.#ephemeral = new EphemeralListeners({ link, traced, ask, verifier: () => this.#verifier });
    this.facade = eventFacade(listenable(options.participant), make)(undefined);
  }

  /** Handlers that run now. */
  get running(): number {
    return this.#consumers.reduce((sum, { running }) => sum + running, 0);
  }

  /** Starts a consumer for each alias that has handlers. Throws when one of its events has none. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    const ready = [...this.#listeners].map(([alias, listeners]) => this.#consumer(alias, listeners));
    for (const consumer of ready) if (consumer !== undefined) this.#consumers.push(consumer);
    for (const consumer of this.#consumers) consumer.start();
    const { consumers } = this.#options.participant;
    for (const alias of Object.keys(consumers)) {
      if (this.#listeners.has(alias)) continue;
      this.#options.link.log.warn({ consumer: alias }, "A declared consumer has no handler; its events wait");
    }
  }

  async stop(deadline: Deadline): Promise<void> {
    this.#ephemeral.stop();
    await Promise.all(this.#consumers.map((consumer) => consumer.stop(deadline)));
  }

  /** One health report for all consumers: failed while one of them cannot get its events. */
  health(): HealthReport {
    for (const { alias, state } of this.#consumers) {
      if (state.phase === "failing")
        return { status: "failed", summary: `consumer ${alias}: ${state.reason}` };
    }
    return { status: "ok" };
  }

  #register(action: EventAction, handler: EventHandler<unknown, Client>, group: string | undefined): void {
    if (this.#started) throw new TypeError("listen() comes before start().");
    const alias = group ?? this.#onlyGroupOf(action);
    const consumer = consumersOf(this.#options.participant)[alias];
    if (consumer === undefined || !takes(consumer, action)) {
      throw new TypeError(`There is no consumer "${alias}" of ${action.name}. ${this.#choices(action)}`);
    }
    const listeners = this.#listeners.get(alias) ?? [];
    if (listeners.some((other) => isSame(other.action, action))) {
      throw new TypeError(`${action.name} has a handler in consumer "${alias}" already.`);
    }
    this.#listeners.set(alias, [...listeners, this.#listener(action, handler)]);
  }

  #listener(action: EventAction, handler: EventHandler<unknown, Client>): EventListener {
    const { clientFor } = this.#options;
    return { action, handle: (event, context) => handler({ event, context, client: clientFor(context) }) };
  }

  #onlyGroupOf(action: EventAction): string {
    const [only, ...others] = this.#groupsOf(action);
    if (only !== undefined && others.length === 0) return only;
    throw new TypeError(`Which consumer handles ${action.name}? ${this.#choices(action)}`);
  }

  #groupsOf(action: EventAction): string[] {
    return Object.entries(consumersOf(this.#options.participant))
      .filter(([, consumer]) => takes(consumer, action))
      .map(([alias]) => alias);
  }

  #choices(action: EventAction): string {
    const groups = this.#groupsOf(action);
    if (groups.length > 0) return `Pass { group }: ${groups.join(", ")}.`;
    return `Declare one in the contract: consumers: { name: consumer({ events: [api.events["${action.name}"]] }) }.`;
  }

  #consumer(alias: string, listeners: readonly EventListener[]): EventConsumer | undefined {
    const { link, requests, traced, participant } = this.#options;
    const declared = consumersOf(participant)[alias];
    const missing = declared?.events.filter(
      (event) => !listeners.some(({ action }) => isSame(action, event)),
    );
    if (missing !== undefined && missing.length > 0) {
      const names = missing.map(({ name }) => name).join(", ");
      throw new TypeError(
        `Consumer "${alias}" has no handler for ${names}; it would stop at the first of them.`,
      );
    }
    const binding = this.#options.binding(alias);
    if (declared === undefined || binding === undefined) {
      if (declared?.optional === true) return undefined;
      throw notBound(alias);
    }
    return new EventConsumer({
      link,
      requests,
      verifier: this.#verifier,
      alias,
      binding: boundConsumer(binding, declared),
      traced,
      listeners,
    });
  }
}

function consumersOf(participant: AnyParticipant): Readonly<Record<string, ConsumerResource>> {
  return participant.consumers;
}

function takes(consumer: ConsumerResource, action: EventAction): boolean {
  return consumer.events.some((event) => isSame(event, action));
}

function isSame(a: EventAction, b: EventAction): boolean {
  return a.api === b.api && a.name === b.name;
}

function listenable(participant: AnyParticipant): Readonly<Record<string, EventAction>> {
  const own = participant.implements.map((api) => api.events);
  const used = participant.uses.map((use) => use.events);
  return Object.assign({}, ...own, ...used) as Record<string, EventAction>;
}

function notBound(alias: string): TransportError {
  return new TransportError({
    code: "trellis.bootstrap.binding_missing",
    message: `The consumer "${alias}" is not provisioned.`,
    hint: "Install the newest contract; or declare the consumer `optional`.",
  });
}
