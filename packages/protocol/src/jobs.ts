export {
  type JobContext,
  JobContextSchema,
  type JobError,
  type JobEvent,
  JobEventSchema,
  type JobLineage,
  type JobLog,
  type JobProgress,
  type JobRetryReason,
  type JobTrigger,
  type JobWaitEdge,
  jobEventHeaders,
  readJobEvent,
} from "./jobs/job-event.ts";
export { derivedJobId, type JobKey, type JobKeyReading, jobKey } from "./jobs/job-key.ts";
export {
  type AttemptCounts,
  dueAt,
  nextAttempt,
  type RetryDecision,
  retryDecision,
  timeLeft,
} from "./jobs/job-retry.ts";
export { type JobTimetable, latestSlot, nextSlot, slotJobId, timetableProblem } from "./jobs/job-schedule.ts";
export {
  isTerminalState,
  JOB_NOTES,
  JOB_STATES,
  JOB_TRANSITIONS,
  type JobEventType,
  type JobNoteType,
  type JobState,
  type JobTransitionType,
  mayTransition,
  STATE_AFTER,
} from "./jobs/job-states.ts";
export {
  JOB_LANES,
  type JobLane,
  type JobPlace,
  type JobQueueAddress,
  type JobQueueSubjects,
  type JobSubjectReading,
  jobQueueSubjects,
  notesOf,
  readJobSubject,
  readWorkSubject,
  transitionSubject,
  transitionsOf,
} from "./jobs/job-subjects.ts";
export { type JobUpdate, JobUpdateSchema, readJobUpdate, UpdateFloor } from "./jobs/job-update.ts";
export {
  JOBS_CHECK,
  type JobWorkerPresence,
  JobWorkerSchema,
  readJobWorkers,
} from "./jobs/job-workers.ts";
export {
  isJobsBinding,
  type JobsBinding,
  JobsBindingSchema,
  type JobsPermissions,
  jobsPermissions,
} from "./jobs/jobs-binding.ts";
export {
  type ConsumerLayout,
  type JobsLayout,
  type JobsLayoutInput,
  jobsLayout,
  type StreamLayout,
} from "./jobs/jobs-layout.ts";
export {
  type AdmissionOutcome,
  admitToKey,
  ageOutcomes,
  clearSkip,
  EMPTY_KEY,
  isEmptyKey,
  type KeyLimits,
  type KeyRecord,
  KeyRecordSchema,
  type KeySlot,
  keyLimits,
  readKeyRecord,
  releaseSlot,
  renewSlot,
  takeSlot,
  untakenSlots,
} from "./jobs/key-record.ts";
export {
  EMPTY_RATE,
  type RateDecision,
  type RateRecord,
  RateRecordSchema,
  readRateRecord,
  reserveRate,
} from "./jobs/rate-record.ts";
export { type JobSnapshot, reduceJob, reduceJobEvent, type StoredJobEvent } from "./jobs/reduce-job.ts";
