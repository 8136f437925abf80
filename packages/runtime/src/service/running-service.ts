import {
  type AnyParticipant,
  type FeedAction,
  type FeedRecord,
  facadeName,
  type RpcAction,
  type RpcRecord,
} from "@trellis/contract";
import { Calling } from "../client/calling.ts";
import type { ClientMiddleware } from "../client/middleware.ts";
import type { ConnectedLink, ConnectSettings } from "../connect/connect-link.ts";
import type { Connection } from "../connect/connection-status.ts";
import type { Link } from "../connect/link.ts";
import type { FeedHandler } from "../feeds/feed-handler.ts";
import { FeedProvider } from "../feeds/feed-provider.ts";
import type { ProducerSession } from "../feeds/producer-session.ts";
import { HealthChecks, type HealthReport } from "../health/health.ts";
import { Heartbeats } from "../health/heartbeats.ts";
import { Deadline } from "../lifecycle/deadline.ts";
import { Scope } from "../lifecycle/scope.ts";
import { within } from "../lifecycle/within.ts";
import { CallContext } from "../rpc/call-context.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import type { OpenCall } from "../rpc/open-call.ts";
import { RpcClient } from "../rpc/rpc-client.ts";
import { handleFacade } from "../rpc/rpc-facade.ts";
import type { RpcHandler } from "../rpc/rpc-handler.ts";
import { RpcProvider } from "../rpc/rpc-provider.ts";
import { withServerSpan } from "../telemetry/rpc-spans.ts";
import { BoundClient } from "./bound-client.ts";
import type {
  ConnectedService,
  ServiceAuth,
  ServiceClient,
  ServiceHandles,
  StopOptions,
  WaitOptions,
} from "./connected-service.ts";
import { type ServiceMiddleware, withServiceMiddleware } from "./middleware.ts";
import { ServiceSurfaces } from "./service-surfaces.ts";

/** The general form of a handler; which action it belongs to decides what it really gets and gives. */
type AnyHandler = RpcHandler<unknown, unknown, unknown, unknown>;
type AnyProducer = FeedHandler<unknown, unknown, unknown, unknown>;

const defaultStopMs = 10_000;

/**
 * A service on its link. What lives is in one scope; it is closed in the reverse of this order: connection,
 * RPC and feeds, jobs, health, listeners. (Transfers will stand between.)
 */
export class RunningService<P extends AnyParticipant> implements ConnectedService<P> {
  readonly health: HealthChecks;
  readonly handle: ServiceHandles<P>;
  readonly client: ServiceClient<P>;
  readonly #participant: P;
  readonly #link: Link;
  readonly #settings: ConnectSettings;
  readonly #provider: RpcProvider;
  readonly #feeds: FeedProvider;
  readonly #calling: Calling;
  readonly #surfaces: ServiceSurfaces<P, ServiceClient<P>>;
  readonly #scope: Scope;
  readonly #middleware: ServiceMiddleware[] = [];
  #heartbeats: Heartbeats | undefined;
  #starting: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;

  private constructor(participant: P, connected: ConnectedLink) {
    const { link, settings } = connected;
    this.#participant = participant;
    this.#link = link;
    this.#settings = settings;
    this.#scope = new Scope({ name: link.label });
    this.#scope.add("connection", () => link.close());
    const rpc = new RpcClient(link, settings);
    this.#calling = new Calling({ participant, link, rpc, traced: settings.traced });
    this.#provider = new RpcProvider(link, settings.admission);
    this.#feeds = new FeedProvider(link, this.#provider, settings.feeds);
    this.#scope.add("rpc", (deadline) => this.#stopRpc(deadline));
    this.#scope.add("jobs", (deadline) => this.#surfaces.stopJobs(deadline));
    const checks = new HealthChecks(settings.log);
    checks.add("nats", () => natsCheck(link));
    this.#surfaces = new ServiceSurfaces(participant, { ...connected, rpc }, (origin) =>
      this.#clientFor(origin),
    );
    if (Object.keys(participant.consumers).length > 0)
      checks.add("consumers", () => this.#surfaces.listeningHealth());
    if (Object.keys(participant.jobs).length > 0) checks.add("jobs", () => this.#surfaces.jobsHealth());
    this.health = checks;
    this.client = this.#clientFor(undefined);
    this.handle = this.#handles(participant);
  }

  /** Built from the same contract that the type is computed from. */
  #handles({ implements: apis }: P): ServiceHandles<P> {
    const rpc: RpcRecord = Object.assign({}, ...apis.map((api) => api.rpc));
    const feeds: FeedRecord = Object.assign({}, ...apis.map((api) => api.feeds));
    return {
      rpc: handleFacade(rpc, (action, handler) =>
        this.#register(action, handler as AnyHandler),
      ) as ServiceHandles<P>["rpc"],
      feed: handleFacade(feeds, (feed, handler) =>
        this.#registerFeed(feed, handler as AnyProducer),
      ) as ServiceHandles<P>["feed"],
    };
  }

  /** Makes the service and publishes its first heartbeat. */
  static async open<P extends AnyParticipant>(
    participant: P,
    connected: ConnectedLink,
  ): Promise<RunningService<P>> {
    const service = new RunningService(participant, connected);
    await service.#startHealth();
    service.#scope.add("listeners", (deadline) => service.#surfaces.stopListening(deadline));
    return service;
  }

  get name(): string {
    return this.#link.session.assignment.name;
  }

  get connection(): Connection {
    return this.#link;
  }

  get event(): ConnectedService<P>["event"] {
    return this.#surfaces.listen;
  }

  get kv(): ConnectedService<P>["kv"] {
    return this.#surfaces.kv;
  }

  get store(): ConnectedService<P>["store"] {
    return this.#surfaces.store;
  }

  get jobs(): ConnectedService<P>["jobs"] {
    return this.#surfaces.jobs;
  }

  get publishPrepared(): ConnectedService<P>["publishPrepared"] {
    return this.#surfaces.publishPrepared(undefined);
  }

  stopEventListeners(options: StopOptions = {}): Promise<void> {
    return this.#surfaces.stopListening(Deadline.after(options.timeout ?? defaultStopMs));
  }

  get auth(): ServiceAuth {
    const { participant, assignment, connection } = this.#link.session;
    const { deployment, instance } = assignment;
    return { participant, deployment, instance, connectionId: connection };
  }

  use(middleware: ServiceMiddleware): void {
    if (this.#starting !== undefined) throw new TypeError("use() comes before start().");
    this.#middleware.push(middleware);
  }

  useClient(middleware: ClientMiddleware): void {
    this.#calling.use(middleware);
  }

  start(options: WaitOptions = {}): Promise<void> {
    this.#starting ??= this.#start(options);
    return this.#starting;
  }

  wait(options: WaitOptions = {}): Promise<void> {
    this.#waiting ??= this.#wait(options);
    return this.#waiting;
  }

  stop(options: StopOptions = {}): Promise<void> {
    this.#stopping ??= this.#stop(options.timeout ?? defaultStopMs);
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #start(options: WaitOptions): Promise<void> {
    this.#scope.throwIfClosed("start");
    this.#reportMissingHandlers(options.strict ?? false);
    await this.#provider.start();
    await this.#surfaces.start();
    // Those who look for its workers need not wait for the next interval.
    if (Object.keys(this.#participant.jobs).length > 0) this.#heartbeats?.hasten();
  }

  async #wait(options: WaitOptions): Promise<void> {
    try {
      await this.start(options);
      const error = await this.#link.closed;
      if (error !== undefined) throw error;
    } finally {
      await this.stop(options);
    }
  }

  async #stop(timeoutMs: number): Promise<void> {
    // A start under way is not overtaken: what it opens must be there to be closed.
    if (this.#starting !== undefined) await within(this.#starting, Math.min(1_000, timeoutMs));
    for (const { name, error, abandoned } of await this.#scope.close(Deadline.after(timeoutMs))) {
      this.#settings.log.warn({ step: name, err: error, abandoned }, "A step of the shutdown went wrong");
    }
  }

  async #stopRpc(deadline: Deadline): Promise<void> {
    // Half a second of the budget stays for closing the connection.
    const [abandoned] = await Promise.all([
      this.#provider.stop(Math.max(0, deadline.remaining() - 500)),
      this.#feeds.stop(deadline),
    ]);
    if (abandoned > 0)
      this.#settings.log.warn({ abandoned }, "Handlers were still running when the time to drain was up");
  }

  async #startHealth(): Promise<void> {
    const heartbeats = new Heartbeats({
      link: this.#link,
      checks: this.health,
      intervalMs: this.#settings.heartbeatMs,
      load: () => ({
        inFlight: this.#provider.openCalls,
        zombies: this.#provider.admission.zombies + this.#feeds.zombies,
      }),
    });
    this.#heartbeats = heartbeats;
    this.#scope.add("health", () => heartbeats.stop());
    await heartbeats.start();
  }

  #register(action: RpcAction, handler: AnyHandler): void {
    this.#provider.register(action, (call, input) =>
      this.#traced(call, () => this.#run(handler, call, input)),
    );
  }

  #registerFeed(feed: FeedAction, producer: AnyProducer): void {
    this.#feeds.register(feed, (session, input) =>
      this.#traced(session, () => this.#run(produces(producer, session), session, input)),
    );
  }

  #traced(request: OpenCall | ProducerSession, handle: () => unknown): unknown {
    return this.#settings.traced ? withServerSpan(request, handle) : handle();
  }

  #run(handler: AnyHandler, request: OpenCall | ProducerSession, input: unknown): unknown {
    const context = new CallContext(request, this.#settings.log);
    const handle = () => handler({ input, context, client: this.#clientFor(request) });
    if (this.#middleware.length === 0) return handle();
    const { api, name } = request.action;
    return withServiceMiddleware(this.#middleware, { api, name, input, context }, handle);
  }

  #clientFor(origin: CallOrigin | undefined): ServiceClient<P> {
    return new BoundClient<P>(this.#calling, this.#surfaces, origin);
  }

  #reportMissingHandlers(strict: boolean): void {
    const apis = this.#participant.implements;
    const rpc = apis.flatMap((api) => Object.values(api.rpc)).filter((it) => !this.#provider.serves(it));
    const feeds = apis.flatMap((api) => Object.values(api.feeds)).filter((it) => !this.#feeds.serves(it));
    const missing = [
      ...rpc.map(({ name }) => ({ name, write: `rpc.${facadePath(name)}(async ({ input }) => ...)` })),
      ...feeds.map(({ name }) => ({
        name,
        write: `feed.${facadePath(name)}(async ({ input, emit }) => ...)`,
      })),
    ].map(({ name, write }) => ({ name, write: `service.handle.${write}` }));
    if (missing.length === 0) return;
    const lines = missing.map(({ write }) => `  ${write}`);
    if (strict) throw new TypeError(`Handlers are missing for:\n${lines.join("\n")}`);
    for (const { name, write } of missing) {
      this.#settings.log.warn(
        { action: name, write },
        "An owned action has no handler; its callers get UnavailableError",
      );
    }
  }
}

/** A producer as a handler: it is given the session's own beside what every handler gets. */
function produces(producer: AnyProducer, session: ProducerSession): AnyHandler {
  const { emit } = session;
  return (request) =>
    producer({
      ...request,
      emit,
      // Made when it is first looked at.
      get signal() {
        return session.signal;
      },
    });
}

function facadePath(name: string): string {
  const { group, leaf } = facadeName(name);
  return `${group}.${leaf}`;
}

function natsCheck(link: Link): HealthReport {
  const { phase } = link.status;
  if (phase === "connected") return { status: "ok" };
  if (phase === "closed" || phase === "error")
    return { status: "failed", summary: "the connection is closed" };
  return { status: "degraded", summary: `the connection is ${phase}` };
}
