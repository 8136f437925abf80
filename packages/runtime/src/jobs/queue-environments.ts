import type { JobResource } from "@trellis/contract";
import { type JobsBinding, jobQueueSubjects } from "@trellis/protocol/jobs";
import type { BrokerRequests } from "../jetstream/broker-requests.ts";
import { BrokerClock } from "./broker-clock.ts";
import { JobStore } from "./job-store.ts";
import type { JobsLink } from "./jobs-link.ts";
import { KeyStore } from "./key-store.ts";
import { QueueEnvironment } from "./queue-environment.ts";

export interface EnvironmentsInput {
  readonly link: JobsLink;
  readonly requests: BrokerRequests;
  /** For one request to the broker, ms. */
  readonly timeoutMs: number;
  binding(): JobsBinding | undefined;
}

/** The queues of a connection's jobs, each made when it is first asked for; made anew when the binding names others. */
export class QueueEnvironments {
  readonly #input: EnvironmentsInput;
  readonly #queues = new Map<string, QueueEnvironment>();
  #stream: string | undefined;
  #clock: BrokerClock | undefined;

  constructor(input: EnvironmentsInput) {
    this.#input = input;
  }

  /** `undefined` while the queue is not bound. */
  get(name: string, resource: Pick<JobResource, "policy">): QueueEnvironment | undefined {
    const binding = this.#input.binding();
    const bound =
      binding === undefined || !Object.hasOwn(binding.queues, name) ? undefined : binding.queues[name];
    if (binding === undefined || bound === undefined) return undefined;
    if (this.#stream !== binding.stream) {
      this.#stream = binding.stream;
      this.#queues.clear();
      this.#clock?.stop();
      this.#clock = undefined;
    }
    const known = this.#queues.get(name);
    if (known !== undefined) return known;
    const made = this.#make(name, binding, resource);
    this.#queues.set(name, made);
    return made;
  }

  /** The broker's clock of a binding; it runs from when somebody starts it. */
  clock(binding: JobsBinding): BrokerClock {
    const { link, requests, timeoutMs } = this.#input;
    this.#clock ??= new BrokerClock(link, { requests, bucket: binding.bucket, timeoutMs });
    return this.#clock;
  }

  stop(): void {
    this.#clock?.stop();
  }

  #make(name: string, binding: JobsBinding, resource: Pick<JobResource, "policy">): QueueEnvironment {
    const { link, requests, timeoutMs } = this.#input;
    const { deployment, secret, stream, bucket, service } = binding;
    const { port } = link.platform;
    const clock = this.clock(binding);
    return new QueueEnvironment({
      link,
      name,
      service,
      policy: resource.policy,
      store: new JobStore({
        port,
        requests,
        stream,
        subjects: jobQueueSubjects({ deployment, queue: name, secret }),
        horizonMs: resource.policy.dedupHorizonMs,
        timeoutMs,
        clock,
      }),
      keys: new KeyStore({ port, requests, bucket, queue: name, timeoutMs }),
      clock,
    });
  }
}
