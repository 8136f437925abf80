/** The states of a job. */
export const JOB_STATES = [
  "pending",
  "active",
  "retry",
  "completed",
  "failed",
  "cancelled",
  "expired",
  "skipped",
  "stale",
  "dead",
  "dismissed",
] as const;

export type JobState = (typeof JOB_STATES)[number];

/** Events that change a job's state. Each is fenced: it is stored only behind the transition that its writer knew. */
export const JOB_TRANSITIONS = [
  "created",
  "started",
  "retry",
  "retried",
  "completed",
  "failed",
  "cancelled",
  "expired",
  "skipped",
  "stale",
  "dead",
  "dismissed",
] as const;

/** Events that tell something of a job and leave its state alone. They never compete with a transition. */
export const JOB_NOTES = [
  "progress",
  "logged",
  "heartbeat",
  "waiting",
  "resumed",
  "staleCompletionIgnored",
] as const;

export type JobTransitionType = (typeof JOB_TRANSITIONS)[number];
export type JobNoteType = (typeof JOB_NOTES)[number];
export type JobEventType = JobTransitionType | JobNoteType;

const live: ReadonlySet<string> = new Set<JobState>(["pending", "active", "retry"]);

/** A terminal state has no way out but a manual `retried`. */
export function isTerminalState(state: JobState): boolean {
  return !live.has(state);
}

/** The state that a transition leads to. */
export const STATE_AFTER: Readonly<Record<JobTransitionType, JobState>> = {
  created: "pending",
  started: "active",
  retry: "retry",
  retried: "pending",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  expired: "expired",
  skipped: "skipped",
  stale: "stale",
  dead: "dead",
  dismissed: "dismissed",
};

const FROM: Readonly<Record<JobTransitionType, readonly JobState[]>> = {
  created: [],
  // From `active`: another worker goes on with a job whose worker was lost.
  started: ["pending", "retry", "active"],
  // From `pending`: a quick first attempt, whose start is folded into its settlement.
  retry: ["pending", "active"],
  retried: ["dead", "failed"],
  completed: ["pending", "active"],
  failed: ["pending", "active", "retry"],
  cancelled: ["pending", "active", "retry"],
  expired: ["pending", "active", "retry"],
  skipped: ["pending", "retry"],
  stale: ["pending", "active", "retry"],
  dead: ["pending", "active", "retry"],
  dismissed: ["dead", "failed"],
};

/**
 * Whether a job in `state` (`undefined`: it does not exist) may take a transition. A writer asks before it writes; the
 * broker's compare-and-set then makes sure that the answer still held when it was stored.
 */
export function mayTransition(state: JobState | undefined, type: JobTransitionType): boolean {
  return state === undefined ? type === "created" : FROM[type].includes(state);
}
