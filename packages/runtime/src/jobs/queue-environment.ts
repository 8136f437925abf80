import type { JobPolicy } from "@trellis/contract";
import { toHex, UnexpectedError } from "@trellis/protocol";
import {
  isTerminalState,
  type JobEvent,
  type JobTransitionType,
  keyLimits,
  mayTransition,
  releaseSlot,
  untakenSlots,
} from "@trellis/protocol/jobs";
import { sleep } from "../lifecycle/backoff.ts";
import type { BrokerClock } from "./broker-clock.ts";
import { type EventStamp, factsOf, type JobFacts, jobEvent } from "./job-facts.ts";
import type { JobStore } from "./job-store.ts";
import type { JobsLink } from "./jobs-link.ts";
import type { KeyStore } from "./key-store.ts";

export interface QueueParts {
  readonly link: JobsLink;
  readonly name: string;
  /** What events call the service: the deployment's stable name. */
  readonly service: string;
  readonly policy: JobPolicy;
  readonly store: JobStore;
  readonly keys: KeyStore;
  readonly clock: BrokerClock;
}

/** What a fenced transition is made of, beside what all have. */
export type OwnEvent = Partial<JobEvent> &
  Pick<JobEvent, "state"> & { readonly eventType: JobTransitionType };

const maxTries = 50;

/** What everybody has to do with one queue shares: makers, workers, references. */
export class QueueEnvironment {
  readonly link: JobsLink;
  readonly name: string;
  readonly service: string;
  readonly policy: JobPolicy;
  readonly store: JobStore;
  readonly keys: KeyStore;
  readonly clock: BrokerClock;
  /** Keys whose holder fell silent and may not be replaced, by hash; told by the sweeper. */
  readonly blocked = new Set<string>();
  readonly #scope: string;
  #next = 0;

  constructor(parts: QueueParts) {
    this.link = parts.link;
    this.name = parts.name;
    this.service = parts.service;
    this.policy = parts.policy;
    this.store = parts.store;
    this.keys = parts.keys;
    this.clock = parts.clock;
    this.#scope = toHex(parts.link.platform.port.random(8));
  }

  /** An id that no other event or attempt has. */
  newId(): string {
    return `${this.#scope}.${(this.#next++).toString(36)}`;
  }

  stamp(): EventStamp {
    return { service: this.service, queue: this.name, eventId: this.newId(), now: this.link.clock.now() };
  }

  async facts(jobId: string): Promise<JobFacts | undefined> {
    return factsOf(await this.store.transitions(jobId));
  }

  /**
   * Ends a job from outside of its worker, whatever happens to it meanwhile: reads it, asks `decide`, writes what that
   * says behind what was read, and begins again when something came between. Gives the facts on which it ended:
   * `undefined` for no such job; unchanged ones when the job was over, or `decide` wanted nothing.
   */
  async settle(
    jobId: string,
    decide: (facts: JobFacts) => OwnEvent | undefined,
  ): Promise<{ readonly facts: JobFacts; readonly changed: boolean } | undefined> {
    for (let attempt = 1; attempt <= maxTries; attempt += 1) {
      const facts = await this.facts(jobId);
      if (facts === undefined) return undefined;
      const own = isTerminalState(facts.state) ? undefined : decide(facts);
      if (own === undefined || !mayTransition(facts.state, own.eventType)) return { facts, changed: false };
      const event = jobEvent(facts, this.stamp(), own);
      const written = await this.store.write({ event, expected: facts.sequence });
      if (written.kind === "stored") return { facts, changed: true };
      await sleep(Math.min(50, attempt) * Math.random());
    }
    throw new UnexpectedError({
      cause: new Error(`a job changed ${maxTries} times while it was to be ended`),
    });
  }

  /**
   * Lets go of what a job holds of its key, and puts those to work that come into its place. Their calls are stored when
   * this resolves. With `repair` also those are called that were granted a slot before and have not taken it: whoever
   * granted it may have died before he called.
   */
  async releaseKey(job: Pick<JobFacts, "jobId" | "key">, options: { token?: string; repair?: boolean } = {}) {
    const limits = keyLimits(this.policy);
    if (job.key === undefined || limits === undefined) return;
    const { promoted, untaken } = await this.keys.changeKey(job.key, (record) => {
      const released = releaseSlot(record, limits, { job: job.jobId, token: options.token });
      const value = { promoted: released.promoted, untaken: untakenSlots(released.record) };
      return { record: released.record, value };
    });
    for (const slot of options.repair === true ? untaken : promoted)
      await this.store.wake(slot.lane, slot.job);
  }
}
