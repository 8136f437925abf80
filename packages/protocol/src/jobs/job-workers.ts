import { compileSchema } from "@trellis/contract";
import { type Static, Type } from "typebox";
import type { Heartbeat } from "../health/heartbeat.ts";
import { TextField } from "../statements/fields.ts";

/** The check of a heartbeat whose info names a process's workers. */
export const JOBS_CHECK = "jobs";

const Count = Type.Integer({ minimum: 0 });

/** A worker of one process: it does the jobs of one queue. */
export const JobWorkerSchema = Type.Object({
  queue: TextField,
  /** Handlers that run at a time, at the most. */
  concurrency: Count,
  /** Handlers that run. */
  running: Count,
  /** Why it gets no jobs. */
  failing: Type.Optional(TextField),
});

export type JobWorkerPresence = Static<typeof JobWorkerSchema>;

const WorkersInfo = Type.Object({ workers: Type.Array(JobWorkerSchema, { maxItems: 1_024 }) });

/** The workers that a heartbeat tells of; none when it says nothing of them that can be read. */
export function readJobWorkers({ checks }: Heartbeat): readonly JobWorkerPresence[] {
  const info = checks.find(({ name }) => name === JOBS_CHECK)?.info;
  if (info === undefined || compileSchema(WorkersInfo).issues(info) !== undefined) return [];
  return (info as Static<typeof WorkersInfo>).workers;
}
