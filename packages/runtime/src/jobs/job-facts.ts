import {
  type AttemptCounts,
  dueAt,
  isTerminalState,
  type JobContext,
  type JobEvent,
  type JobEventType,
  type JobLane,
  type JobRetryReason,
  type JobState,
  type JobTrigger,
} from "@trellis/protocol/jobs";
import type { StoredTransition } from "./job-store.ts";

/** What the transitions of a job say to whoever is to make the next one. */
export interface JobFacts {
  readonly jobId: string;
  readonly state: JobState;
  /** Of the last transition: what the next one is fenced by. */
  readonly sequence: number;
  readonly counts: AttemptCounts;
  /** Of the attempt that runs, or ran last. */
  readonly token: string | undefined;
  /** Sequence of the message that this attempt works on. */
  readonly source: number | undefined;
  readonly retryReason: JobRetryReason | undefined;
  /** It is not to be worked on before, ms of the broker's clock. */
  readonly due: number;
  readonly createdAt: number;
  /** Ms after creation. */
  readonly deadline: number | undefined;
  readonly payload: unknown;
  readonly context: JobContext;
  readonly trigger: JobTrigger | undefined;
  readonly lane: JobLane;
  /** Hash of its key. */
  readonly key: string | undefined;
}

/** The facts of a job's transitions, in order; `undefined` when its creation is not among them. */
export function factsOf(transitions: readonly StoredTransition[]): JobFacts | undefined {
  let facts: JobFacts | undefined;
  for (const transition of transitions) facts = next(facts, transition);
  return facts;
}

/** The facts of a job of which nothing but its creation is stored. */
export function factsOfCreated({ event, sequence, at }: Omit<StoredTransition, "place">): JobFacts {
  return {
    jobId: event.jobId,
    state: "pending",
    sequence,
    counts: countsOf(event),
    token: undefined,
    source: undefined,
    retryReason: undefined,
    due: dueAt(event, at),
    createdAt: at,
    deadline: event.deadline,
    payload: event.payload,
    context: event.context,
    trigger: event.trigger,
    lane: event.priority ?? "normal",
    key: event.key,
  };
}

function next(facts: JobFacts | undefined, transition: StoredTransition): JobFacts | undefined {
  const { event, sequence, at } = transition;
  if (facts === undefined) return event.eventType === "created" ? factsOfCreated(transition) : undefined;
  if (isTerminalState(facts.state) && event.eventType !== "retried") return facts;
  const replayed = event.eventType === "retried";
  return {
    ...facts,
    state: event.state,
    sequence,
    counts: countsOf(event),
    token: event.token ?? facts.token,
    source: event.source ?? facts.source,
    retryReason: event.retryReason,
    due: event.eventType === "retry" ? dueAt(event, at) : 0,
    ...(replayed && { createdAt: at }),
    ...(event.deadline !== undefined && { deadline: event.deadline }),
    ...(replayed && event.payload !== undefined && { payload: event.payload }),
  };
}

function countsOf({ tries, failures = 0, crashes = 0 }: JobEvent): AttemptCounts {
  return { tries, failures, crashes };
}

/** What every event of a job is begun with. */
export interface EventStamp {
  readonly service: string;
  readonly queue: string;
  readonly eventId: string;
  /** Ms, by the writer's clock. */
  readonly now: number;
}

/** An event of a job: what all have, and what this one adds. */
export function jobEvent(
  facts: Pick<JobFacts, "jobId" | "state" | "context" | "counts">,
  stamp: EventStamp,
  own: Partial<JobEvent> & { readonly eventType: JobEventType; readonly state: JobState },
): JobEvent {
  const { tries, failures, crashes } = facts.counts;
  return {
    jobId: facts.jobId,
    service: stamp.service,
    jobType: stamp.queue,
    eventId: stamp.eventId,
    context: facts.context,
    tries,
    previousState: facts.state,
    timestamp: new Date(stamp.now).toISOString(),
    ...(failures > 0 && { failures }),
    ...(crashes > 0 && { crashes }),
    ...own,
  };
}
