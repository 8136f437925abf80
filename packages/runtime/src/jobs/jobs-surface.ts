import type { AnyParticipant, JobResource } from "@trellis/contract";
import { TransportError } from "@trellis/protocol";
import { derivedJobId, type JobsBinding } from "@trellis/protocol/jobs";
import type { HealthReport } from "../health/health.ts";
import type { BrokerRequests } from "../jetstream/broker-requests.ts";
import type { Deadline } from "../lifecycle/deadline.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import { JobCreator } from "./job-creator.ts";
import type { JobHandleOptions, JobRequest } from "./job-handler.ts";
import { JobWorker } from "./job-worker.ts";
import type { JobsLink } from "./jobs-link.ts";
import { KeySweeper } from "./key-sweeper.ts";
import { QueueCalls } from "./queue-calls.ts";
import type { QueueEnvironment } from "./queue-environment.ts";
import { QueueEnvironments } from "./queue-environments.ts";
import { ScheduleRunner } from "./schedule-runner.ts";

export interface JobsSurfaceOptions<Client> {
  readonly participant: AnyParticipant;
  readonly link: JobsLink;
  readonly requests: BrokerRequests;
  readonly traced: boolean;
  /** For one request to the broker, ms. */
  readonly timeoutMs: number;
  /** What this connection's inboxes begin with. */
  readonly inbox: string;
  /** What the jobs of the deployment are bound to; `undefined` when they are not. */
  binding(): JobsBinding | undefined;
  /** Named in the errors that jobs are stored with: contract id and digest. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** The client that a handler is given. */
  clientFor(origin: CallOrigin): Client;
}

type Handler = (request: JobRequest<unknown, unknown, unknown, unknown>) => unknown;

interface Registered {
  readonly handle: Handler;
  readonly options: JobHandleOptions;
}

interface Running {
  readonly worker: JobWorker;
  readonly sweeper: KeySweeper;
  readonly schedules: ScheduleRunner;
}

/** The jobs of a service: queues to make jobs in, and a worker for each queue with a handler. */
export class JobsSurface<Client> {
  readonly #options: JobsSurfaceOptions<Client>;
  readonly #environments: QueueEnvironments;
  readonly #handlers = new Map<string, Registered>();
  readonly #running: Running[] = [];
  #started = false;
  /** The facade for code that runs for no request. */
  #own: object | undefined;

  constructor(options: JobsSurfaceOptions<Client>) {
    this.#options = options;
    this.#environments = new QueueEnvironments(options);
  }

  /** The queues for calls of one origin: inside a handler that of its request, else none. */
  facade(origin: CallOrigin | undefined): object {
    if (origin !== undefined) return this.#facade(origin);
    this.#own ??= this.#facade(undefined);
    return this.#own;
  }

  #facade(origin: CallOrigin | undefined): object {
    const entries = Object.entries(this.#queues).map(([name, resource]) => {
      const calls = new QueueCalls({
        resource,
        origin,
        environment: () => this.#environments.get(name, resource),
        derive: (kind, parts) => derivedJobId(this.#options.link.platform.port, kind, parts),
      });
      const handle = (handler: Handler, options?: JobHandleOptions) => this.#register(name, handler, options);
      return [name, Object.assign(calls, { handle })] as const;
    });
    return Object.freeze(Object.fromEntries(entries));
  }

  /** Handlers that run now. */
  get running(): number {
    return this.#running.reduce((sum, { worker }) => sum + worker.running, 0);
  }

  /** Starts a worker for each queue with a handler. When one cannot start, none does. */
  async start(): Promise<void> {
    if (this.#started) return;
    this.#started = true;
    const binding = this.#options.binding();
    const handled = [...this.#handlers];
    if (handled.length === 0) return;
    const made = handled.map(([name, registered]) => this.#make(name, registered, binding));
    if (binding !== undefined) await this.#environments.clock(binding).start();
    for (const running of made) {
      if (running === undefined) continue;
      this.#running.push(running);
      running.schedules.start();
      running.worker.start();
      running.sweeper.start();
    }
  }

  /** Drains: what has begun may end within the deadline, then its signal aborts, then it is handed back. Idempotent. */
  async stop(deadline: Deadline): Promise<void> {
    this.#started = true;
    for (const { schedules, sweeper } of this.#running) {
      schedules.stop();
      sweeper.stop();
    }
    await Promise.all(this.#running.map(({ worker }) => worker.stop(deadline)));
    this.#environments.stop();
  }

  /** One health report for all queues, with their workers: failed while one of them cannot get its jobs. */
  health(): HealthReport {
    const workers = this.#running.map(({ worker }) => worker.presence);
    if (workers.length === 0) return { status: "ok" };
    const info = { workers };
    const failing = workers.find(({ failing: reason }) => reason !== undefined);
    if (failing === undefined) return { status: "ok", info };
    return { status: "failed", summary: `queue ${failing.queue}: ${failing.failing}`, info };
  }

  get #queues(): Readonly<Record<string, JobResource>> {
    return this.#options.participant.jobs;
  }

  #register(name: string, handle: Handler, options: JobHandleOptions = {}): void {
    if (this.#started) throw new TypeError(`jobs.${name}.handle() comes before start().`);
    if (this.#handlers.has(name)) throw new TypeError(`The queue "${name}" has a handler already.`);
    const { concurrency = 1 } = options;
    if (!Number.isSafeInteger(concurrency) || concurrency < 1)
      throw new TypeError(`The concurrency of the queue "${name}" must be a whole number of at least 1.`);
    this.#handlers.set(name, { handle, options });
  }

  #make(
    name: string,
    { handle, options }: Registered,
    binding: JobsBinding | undefined,
  ): Running | undefined {
    const resource = this.#queues[name];
    const queue = resource === undefined ? undefined : this.#environments.get(name, resource);
    if (resource === undefined || queue === undefined || binding === undefined) {
      if (resource?.optional === true) return undefined;
      throw notBound(name);
    }
    return this.#wire(queue, resource, { handle, options, binding });
  }

  #wire(
    queue: QueueEnvironment,
    resource: JobResource,
    { handle, options, binding }: Registered & { readonly binding: JobsBinding },
  ): Running {
    const { traced, inbox, annotations = {}, clientFor } = this.#options;
    const creator = new JobCreator(queue, resource);
    return {
      worker: new JobWorker({
        queue,
        resource,
        binding,
        inbox,
        traced,
        annotations,
        retryOn: options.retryOn,
        concurrency: options.concurrency ?? resource.policy.concurrency,
        handle,
        clientFor,
      }),
      sweeper: new KeySweeper({ queue, skip: (jobId, hash) => creator.skip(jobId, hash) }),
      schedules: new ScheduleRunner(queue, creator),
    };
  }
}

function notBound(name: string): TransportError {
  return new TransportError({
    code: "trellis.bootstrap.binding_missing",
    message: `The queue "${name}" is not provisioned.`,
    hint: "Install the newest contract; or declare the queue `optional`.",
  });
}
