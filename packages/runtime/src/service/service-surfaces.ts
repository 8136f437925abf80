import type { AnyParticipant } from "@trellis/contract";
import { AsyncResult } from "@trellis/result";
import type { ConnectedLink } from "../connect/connect-link.ts";
import type { Link } from "../connect/link.ts";
import { askForListener } from "../events/ask-for-listener.ts";
import type { EventListenFacade } from "../events/event-listeners.ts";
import type {
  EventPayloads,
  EventPublishFacade,
  PrepareByName,
  PublishByName,
  PublishPrepared,
} from "../events/event-publishers.ts";
import { ListeningSurface } from "../events/listening-surface.ts";
import { PublishingSurface } from "../events/publishing-surface.ts";
import type { HealthReport } from "../health/health.ts";
import type { JobsCallFacade, JobsFacade } from "../jobs/jobs-facade.ts";
import { JobsSurface } from "../jobs/jobs-surface.ts";
import { type KvFacade, kvFacade } from "../kv/kv-facade.ts";
import type { Deadline } from "../lifecycle/deadline.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import type { RpcClient } from "../rpc/rpc-client.ts";
import { type StoreInput, StreamObjectStore } from "../store/object-store.ts";
import { type StoreFacade, storeFacade } from "../store/store-facade.ts";
import { SweepSchedule } from "../store/sweep-schedule.ts";

/** The surfaces of a service that live in streams: events, jobs, buckets, object stores. */
export class ServiceSurfaces<P extends AnyParticipant, Client> {
  readonly kv: KvFacade<P>;
  readonly store: StoreFacade<P>;
  /** Events, to be listened to. */
  readonly listen: EventListenFacade<P, Client>;
  readonly #jobs: JobsSurface<Client>;
  readonly #publishing: PublishingSurface;
  readonly #listening: ListeningSurface<Client>;
  readonly #sweeps: SweepSchedule | undefined;

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
    this.#sweeps = Object.keys(participant.store).length === 0 ? undefined : sweepsOf(shared);
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
    this.#jobs = new JobsSurface<Client>({
      participant,
      link,
      requests,
      traced,
      timeoutMs,
      inbox: link.session.authorization.inbox,
      binding: () => link.session.resources.jobs ?? undefined,
      annotations: { contract: participant.id, digest: participant.digest },
      clientFor,
    });
    this.listen = this.#listening.facade as EventListenFacade<P, Client>;
  }

  /** Events, to be published for the request that is worked on, or for none. */
  publish(origin: CallOrigin | undefined): EventPublishFacade<P> {
    return this.#publishing.facade(origin) as EventPublishFacade<P>;
  }

  /** Publishing by name, for the request that is worked on, or for none. */
  named(origin: CallOrigin | undefined): {
    prepare: PrepareByName<EventPayloads<P>>;
    publish: PublishByName<EventPayloads<P>>;
  } {
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

  /** The queues of the service itself. */
  get jobs(): JobsFacade<P, Client> {
    return this.#jobs.facade(undefined) as JobsFacade<P, Client>;
  }

  /** The queues, to make jobs in for the request that is worked on, or for none. */
  jobCalls(origin: CallOrigin | undefined): JobsCallFacade<P> {
    return this.#jobs.facade(origin) as JobsCallFacade<P>;
  }

  /** Starts the workers, then the listeners: an event may make a job. */
  async start(): Promise<void> {
    await this.#jobs.start();
    this.#listening.start();
    this.#sweeps?.start();
  }

  /** Ends ephemeral listeners at once, and consumers when their handlers have ended. */
  stopListening(deadline: Deadline): Promise<void> {
    return this.#listening.stop(deadline);
  }

  stopJobs(deadline: Deadline): Promise<void> {
    return this.#jobs.stop(deadline);
  }

  listeningHealth(): HealthReport {
    return this.#listening.health();
  }

  jobsHealth(): HealthReport {
    return this.#jobs.health();
  }
}

/** They end with the connection: it is the last thing that a service closes. */
function sweepsOf(shared: Omit<StoreInput, "binding"> & { readonly link: Link }): SweepSchedule {
  const { link } = shared;
  const sweeps = new SweepSchedule({
    log: link.log,
    stores: () =>
      Object.entries(link.session.resources.store).map(([alias, binding]) => ({
        alias,
        sweep: () => new StreamObjectStore({ ...shared, binding }).sweep(),
      })),
  });
  link.listen({ onClosed: () => sweeps.stop() });
  return sweeps;
}
