import { isToken, requireToken } from "../subjects/token.ts";
import { JOB_NOTES, JOB_TRANSITIONS, type JobEventType } from "./job-states.ts";

/** Priorities, each with a work consumer of its own; the first goes first. */
export const JOB_LANES = ["high", "normal", "low"] as const;
export type JobLane = (typeof JOB_LANES)[number];

/**
 * Where the event that makes a job puts it: into a lane, to be worked on; `delayed`, to be parked by the next worker;
 * `waiting`, with its key, until another job makes room.
 */
export type JobPlace = JobLane | "delayed" | "waiting";

/** The queue of a deployment. `secret`: the deployment's 32 hexadecimal characters, known to its bindings alone. */
export interface JobQueueAddress {
  readonly deployment: string;
  readonly queue: string;
  readonly secret: string;
}

/** Everything that the subjects of a queue begin with, without a final dot. */
export interface JobQueueSubjects {
  /** Transitions: `<transitions>.<job>.<event>[.<place>]`. */
  readonly transitions: string;
  /** Notes: `<notes>.<job>.<event>`. */
  readonly notes: string;
  /** Calls to go on with a job: `<work>.<lane>.<job>`. */
  readonly work: string;
  /** Schedules, one for each parked job: `<park>.<job>`. */
  readonly park: string;
  /** Stored transitions as they are republished: `<live>.<job>.<event>[.<place>]`. */
  readonly live: string;
  /** Live updates, not stored: `<updates>.<job>`. */
  readonly updates: string;
}

export function jobQueueSubjects(address: JobQueueAddress): JobQueueSubjects {
  const tail = queueTail(address.deployment, requireToken(address.queue, "queue"), address.secret);
  return {
    transitions: `jobs.v1.${tail}`,
    notes: `jobnotes.v1.${tail}`,
    work: `jobwork.v1.${tail}`,
    park: `jobpark.v1.${tail}`,
    live: `joblive.v1.${tail}`,
    updates: `jobupdates.v1.${tail}`,
  };
}

/** Deployment, queue and secret as subjects hold them; `*` or a mapping in place of the queue stands for all. */
export function queueTail(deployment: string, queue: string, secret: string): string {
  if (!/^[0-9a-f]{32}$/.test(secret))
    throw new TypeError("A deployment's secret is 32 hexadecimal characters.");
  return `${requireToken(deployment, "deployment")}.${queue}.${secret}`;
}

/** The subject of a transition. `place` is given for those that put a job to work: `created` and `retried`. */
export function transitionSubject(
  subjects: Pick<JobQueueSubjects, "transitions">,
  job: string,
  event: JobEventType | `${"created" | "retried"}.${JobPlace}`,
): string {
  return `${subjects.transitions}.${requireToken(job, "job")}.${event}`;
}

/** Every transition of one job: what a compare-and-set goes over, and how the last one is found. */
export function transitionsOf(subjects: Pick<JobQueueSubjects, "transitions">, job: string): string {
  return `${subjects.transitions}.${requireToken(job, "job")}.>`;
}

/** Every note of one job. */
export function notesOf(subjects: Pick<JobQueueSubjects, "notes">, job: string): string {
  return `${subjects.notes}.${requireToken(job, "job")}.*`;
}

/** What the subject of a job's message says. */
export interface JobSubjectReading {
  readonly jobId: string;
  readonly event: JobEventType;
  readonly place: JobPlace | undefined;
}

const places: ReadonlySet<string> = new Set([...JOB_LANES, "delayed", "waiting"]);
const transitions: ReadonlySet<string> = new Set(JOB_TRANSITIONS);
const notes: ReadonlySet<string> = new Set(JOB_NOTES);

/** Reads the subject of a transition, as it is stored or as it is republished, or of a note. */
export function readJobSubject(subjects: JobQueueSubjects, subject: string): JobSubjectReading | undefined {
  const { transitions: stored, live, notes: noted } = subjects;
  const prefix = [stored, live, noted].find((candidate) => subject.startsWith(`${candidate}.`));
  if (prefix === undefined) return undefined;
  const [jobId = "", event = "", place, ...more] = subject.slice(prefix.length + 1).split(".");
  if (!isToken(jobId) || more.length > 0) return undefined;
  if (prefix === noted)
    return notes.has(event) && place === undefined
      ? { jobId, event: event as JobEventType, place }
      : undefined;
  if (!transitions.has(event) || (place !== undefined) !== putsToWork(event)) return undefined;
  if (place !== undefined && !places.has(place)) return undefined;
  return { jobId, event: event as JobEventType, place: place as JobPlace | undefined };
}

function putsToWork(event: string): boolean {
  return event === "created" || event === "retried";
}

/** The job of a call to go on, and its lane. */
export function readWorkSubject(
  subjects: Pick<JobQueueSubjects, "work">,
  subject: string,
): { readonly jobId: string; readonly lane: JobLane } | undefined {
  if (!subject.startsWith(`${subjects.work}.`)) return undefined;
  const [lane = "", jobId = "", ...more] = subject.slice(subjects.work.length + 1).split(".");
  if (!isToken(jobId) || more.length > 0 || !JOB_LANES.some((known) => known === lane)) return undefined;
  return { jobId, lane: lane as JobLane };
}
