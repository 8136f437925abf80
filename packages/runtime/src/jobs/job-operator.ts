import type { JobPolicy } from "@trellis/contract";
import {
  admitToKey,
  isTerminalState,
  type JobPlace,
  type JobSnapshot,
  type JobState,
  keyLimits,
  mayTransition,
} from "@trellis/protocol/jobs";
import { type JobFacts, jobEvent } from "./job-facts.ts";
import { JobRef } from "./job-ref.ts";
import type { OwnEvent, QueueEnvironment } from "./queue-environment.ts";
import { type EnvironmentsInput, QueueEnvironments } from "./queue-environments.ts";

export interface JobOperatorInput extends EnvironmentsInput {
  /** The declared policy of a queue; `undefined` for a queue that there is not. */
  policy(queue: string): JobPolicy | undefined;
}

/** What became of an operator's wish. `refused`: the job is in a state that does not allow it, or its key is taken. */
export type OperatorOutcome =
  | { readonly kind: "done"; readonly state: JobState }
  | { readonly kind: "unchanged"; readonly state: JobState }
  | { readonly kind: "refused"; readonly state: JobState; readonly reason: "state" | "key" }
  | { readonly kind: "unknown" };

/** One transition of a job. */
export interface JobHistoryEntry {
  readonly type: string;
  readonly state: JobState;
  /** When the broker stored it, ms since 1970. */
  readonly at: number;
  readonly tries: number;
  readonly error?: string;
}

const maxTries = 20;
const begun = { tries: 0, failures: 0, crashes: 0 } as const;

/**
 * What operators do to jobs: from outside of the service, by the same fenced transitions as everybody. Whoever was
 * quicker wins, and the outcome says so.
 */
export class JobOperator {
  readonly #environments: QueueEnvironments;
  readonly #policy: JobOperatorInput["policy"];

  constructor(input: JobOperatorInput) {
    this.#environments = new QueueEnvironments(input);
    this.#policy = input.policy;
  }

  /** Runs a dead or failed job again under its id, with its attempts counted from the beginning. */
  retry(queue: string, jobId: string): Promise<OperatorOutcome> {
    return this.#change(queue, jobId, async (environment, facts) => {
      const place = await admission(environment, facts);
      if (place === undefined) return "key";
      return {
        place,
        event: { eventType: "retried", state: "pending", trigger: { kind: "manualReplay" } },
      };
    });
  }

  /** Puts a dead or failed job out of the way. */
  dismiss(queue: string, jobId: string): Promise<OperatorOutcome> {
    return this.#change(queue, jobId, () =>
      Promise.resolve({
        event: {
          eventType: "dismissed",
          state: "dismissed",
          error: { type: "Dismissed", message: "dismissed by an operator" },
        },
      }),
    );
  }

  /** Cancels a job that is not over; one that is over stays as it is. */
  async cancel(queue: string, jobId: string): Promise<OperatorOutcome> {
    const environment = this.#environment(queue);
    if (environment === undefined) return { kind: "unknown" };
    const before = await environment.facts(jobId);
    if (before === undefined) return { kind: "unknown" };
    if (isTerminalState(before.state)) return { kind: "unchanged", state: before.state };
    const { state } = (await refOf(environment, jobId).cancel()).orThrow();
    return state === "cancelled" ? { kind: "done", state } : { kind: "unchanged", state };
  }

  /** Lets go of whatever a job holds of its key: the way out where `stalePolicy` is `block`. */
  async releaseKey(queue: string, jobId: string): Promise<OperatorOutcome> {
    const environment = this.#environment(queue);
    const facts = await environment?.facts(jobId);
    if (environment === undefined || facts === undefined) return { kind: "unknown" };
    await environment.releaseKey(facts);
    return { kind: "done", state: facts.state };
  }

  /** The job as its stored events tell of it. */
  async snapshot(queue: string, jobId: string): Promise<JobSnapshot | undefined> {
    return this.#environment(queue)?.store.snapshot(jobId);
  }

  /** What happened to a job, in order; of notes only those that are kept. */
  async history(queue: string, jobId: string): Promise<JobHistoryEntry[]> {
    const transitions = (await this.#environment(queue)?.store.transitions(jobId)) ?? [];
    return transitions.map(({ event: { eventType: type, state, tries, error }, at }) => ({
      type,
      state,
      at,
      tries,
      ...(error === undefined ? {} : { error: `${error.type}: ${error.message}` }),
    }));
  }

  async #change(
    queue: string,
    jobId: string,
    decide: (environment: QueueEnvironment, facts: JobFacts) => Promise<Decision | "key">,
  ): Promise<OperatorOutcome> {
    const environment = this.#environment(queue);
    if (environment === undefined) return { kind: "unknown" };
    for (let attempt = 1; ; attempt += 1) {
      const facts = await environment.facts(jobId);
      if (facts === undefined) return { kind: "unknown" };
      const { state } = facts;
      if (state !== "dead" && state !== "failed") return { kind: "refused", state, reason: "state" };
      const decision = await decide(environment, facts);
      if (decision === "key") return { kind: "refused", state, reason: "key" };
      const { event: own, place } = decision;
      if (!mayTransition(state, own.eventType)) return { kind: "refused", state, reason: "state" };
      const event = jobEvent({ ...facts, counts: begun }, environment.stamp(), own);
      const written = await environment.store.write({ event, expected: facts.sequence, place });
      if (written.kind === "stored") return { kind: "done", state: own.state };
      if (attempt === maxTries) return { kind: "refused", state, reason: "state" };
    }
  }

  #environment(queue: string): QueueEnvironment | undefined {
    const policy = this.#policy(queue);
    return policy === undefined ? undefined : this.#environments.get(queue, { policy });
  }
}

interface Decision {
  readonly event: OwnEvent;
  readonly place?: JobPlace;
}

/** Where a job goes that is to run again: its lane, or, with a key, where the key's record lets it. */
async function admission(environment: QueueEnvironment, facts: JobFacts): Promise<JobPlace | undefined> {
  const limits = keyLimits(environment.policy);
  if (limits === undefined || facts.key === undefined) return facts.lane;
  const wish = {
    job: facts.jobId,
    lane: facts.lane,
    submission: undefined,
    blocked: environment.blocked.has(facts.key),
    now: environment.clock.now(),
  };
  const { outcome, granted } = await environment.keys.changeKey(facts.key, (record) => {
    const admitted = admitToKey(record, limits, wish);
    return { record: admitted.record, value: admitted };
  });
  if (outcome.kind !== "accepted") return undefined;
  return granted ? facts.lane : "waiting";
}

function refOf(environment: QueueEnvironment, jobId: string): JobRef {
  return new JobRef(environment, jobId, { result: undefined, update: undefined });
}
