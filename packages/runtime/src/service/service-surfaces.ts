import type { AnyParticipant } from "@trellis/contract";
import { AsyncResult } from "@trellis/result";
import type { ConnectedLink } from "../connect/connect-link.ts";
import { askForListener } from "../events/ask-for-listener.ts";
import type { EventListenFacade } from "../events/event-listeners.ts";
import type { EventPublishFacade, PublishByName, PublishPrepared } from "../events/event-publishers.ts";
import { ListeningSurface } from "../events/listening-surface.ts";
import { PublishingSurface } from "../events/publishing-surface.ts";
import type { HealthReport } from "../health/health.ts";
import { type KvFacade, kvFacade } from "../kv/kv-facade.ts";
import type { Deadline } from "../lifecycle/deadline.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import type { RpcClient } from "../rpc/rpc-client.ts";
import { type StoreFacade, storeFacade } from "../store/store-facade.ts";

/** The surfaces of a service that live in streams: events, buckets, object stores. */
export class ServiceSurfaces<P extends AnyParticipant, Client> {
  readonly kv: KvFacade<P>;
  readonly store: StoreFacade<P>;
  /** Events, to be listened to. */
  readonly listen: EventListenFacade<P, Client>;
  readonly #publishing: PublishingSurface;
  readonly #listening: ListeningSurface<Client>;

  constructor(
    participant: P,
    { link, settings, rpc }: ConnectedLink & { readonly rpc: RpcClient },
    clientFor: (origin: CallOrigin) => Client,
  ) {
    const { requests } = link;
    const { timeoutMs, traced } = settings;
    const shared = { link, requests, timeoutMs };
    // Facades are built from the same contract that their types are computed from.
    this.kv = kvFacade({
      ...shared,
      resources: participant.kv,
      bindings: () => link.session.resources.kv,
    }) as KvFacade<P>;
    this.store = storeFacade({
      ...shared,
      resources: participant.store,
      bindings: () => link.session.resources.store,
    }) as StoreFacade<P>;
    this.#publishing = new PublishingSurface({ ...shared, participant, traced });
    this.#listening = new ListeningSurface<Client>({
      participant,
      link,
      requests,
      traced,
      ask: askForListener(rpc),
      binding: (alias) => link.session.resources.consumers[alias],
      clientFor,
    });
    this.listen = this.#listening.facade as EventListenFacade<P, Client>;
  }

  /** Events, to be published for the request that is worked on, or for none. */
  publish(origin: CallOrigin | undefined): EventPublishFacade<P> {
    return this.#publishing.facade(origin) as EventPublishFacade<P>;
  }

  /** Publishing by name, for the request that is worked on, or for none. */
  named(origin: CallOrigin | undefined): PublishByName<P> {
    const find = (name: string) => this.#publishing.named(name, origin);
    return {
      prepare: (name, payload, options) => find(name).andThen((event) => event.prepare(payload, options)),
      publish: (name, payload, options) => {
        const found = find(name);
        return found.isErr() ? AsyncResult.err(found.error) : found.value.publish(payload, options);
      },
    };
  }

  publishPrepared(origin: CallOrigin | undefined): PublishPrepared {
    return this.#publishing.publishPrepared(origin);
  }

  /** Handlers of events that run now. */
  get running(): number {
    return this.#listening.running;
  }

  startListening(): void {
    this.#listening.start();
  }

  /** Ends ephemeral listeners at once, and consumers when their handlers have ended. */
  stopListening(deadline: Deadline): Promise<void> {
    return this.#listening.stop(deadline);
  }

  listeningHealth(): HealthReport {
    return this.#listening.health();
  }
}
