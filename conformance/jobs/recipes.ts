// How the outputs of the job vectors follow from their inputs.

import type { JobPolicy } from "@trellis/contract";
import {
  type AttemptCounts,
  admitToKey,
  derivedJobId,
  type JobEvent,
  type JobQueueAddress,
  type JobState,
  type JobsLayoutInput,
  type JobTimetable,
  type JobTransitionType,
  jobKey,
  jobQueueSubjects,
  jobsLayout,
  jobsPermissions,
  type KeyLimits,
  type KeyRecord,
  latestSlot,
  mayTransition,
  nextAttempt,
  nextSlot,
  type RateRecord,
  readJobEvent,
  readJobSubject,
  reduceJob,
  releaseSlot,
  reserveRate,
  retryDecision,
  takeSlot,
} from "@trellis/protocol/jobs";
import { type Recipes, recipe } from "../protocol/recipe.ts";

export const jobRecipes: Recipes = {
  subjects: recipe((_port, address: JobQueueAddress) => jobQueueSubjects(address)),
  readSubject: recipe((_port, input: { address: JobQueueAddress; subject: string }) =>
    readJobSubject(jobQueueSubjects(input.address), input.subject),
  ),
  readEvent: recipe(
    (_port, input: { body: unknown; subject: { jobId: string; event: JobEvent["eventType"] } }) =>
      readJobEvent(input.body, input.subject) === undefined ? null : "read",
  ),
  key: recipe((port, input: { segments: string[]; payload: unknown }) => {
    const reading = jobKey(port, input.segments, input.payload);
    return reading.ok ? reading.key : null;
  }),
  derivedId: recipe((port, input: { kind: string; parts: string[] }) =>
    derivedJobId(port, input.kind, input.parts),
  ),
  transition: recipe((_port, input: { state: JobState | null; type: JobTransitionType }) =>
    mayTransition(input.state ?? undefined, input.type),
  ),
  reduce: recipe((_port, input: { events: { event: JobEvent; at: number }[] }) => reduceJob(input.events)),
  admit: recipe(
    (_port, input: { record: KeyRecord; limits: KeyLimits; job: string; submission?: string; now: number }) =>
      admitToKey(input.record, input.limits, { ...input, lane: "normal" }),
  ),
  take: recipe((_port, input: { record: KeyRecord; limits: KeyLimits; job: string; token: string }) =>
    takeSlot(input.record, input.limits, { ...input, lane: "normal" }),
  ),
  release: recipe((_port, input: { record: KeyRecord; limits: KeyLimits; job: string; token?: string }) =>
    releaseSlot(input.record, input.limits, input),
  ),
  retry: recipe((_port, input: { policy: JobPolicy["retry"]; failures: number; random: number }) =>
    retryDecision(input.policy, input.failures, input.random),
  ),
  attempt: recipe(
    (_port, input: { counts: AttemptCounts; active: boolean; untouched: boolean; deliveries: number }) =>
      nextAttempt(input),
  ),
  rate: recipe(
    (_port, input: { record: RateRecord; limit: number; perMs: number; want: number; now: number }) =>
      reserveRate(input.record, input),
  ),
  slots: recipe((_port, input: { timetable: JobTimetable; after: string; count: number }) => {
    const slots: string[] = [];
    let at = Date.parse(input.after);
    for (let made = 0; made < input.count; made += 1) {
      const next = nextSlot(input.timetable, at);
      if (next === undefined) break;
      slots.push(new Date(next).toISOString());
      at = next;
    }
    return slots;
  }),
  latest: recipe((_port, input: { timetable: JobTimetable; now: string }) => {
    const latest = latestSlot(input.timetable, Date.parse(input.now));
    return latest === undefined ? null : new Date(latest).toISOString();
  }),
  layout: recipe((_port, input: JobsLayoutInput) => {
    const { binding, ...rest } = jobsLayout(input);
    return { ...rest, binding, permissions: jobsPermissions(binding) };
  }),
};
