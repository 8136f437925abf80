import { type Static, Type } from "typebox";
import { kvPrefix, kvStreamName } from "../kv/kv-subject.ts";
import { directGetSubject } from "../subjects/control-account.ts";
import { JOB_NOTES, JOB_TRANSITIONS } from "./job-states.ts";
import { JOB_LANES, jobQueueSubjects } from "./job-subjects.ts";
import { schemaCheck } from "./schema-check.ts";

const name = Type.String({ pattern: "^[A-Za-z0-9_-]{1,256}$" });
const duration = Type.Integer({ minimum: 1 });

/** What a process is told about the jobs of its deployment. Holds its secret: never logged. */
export const JobsBindingSchema = Type.Object({
  version: Type.Literal(1),
  deployment: name,
  /** What events call the service. */
  service: Type.String({ minLength: 1, maxLength: 256 }),
  secret: Type.String({ pattern: "^[0-9a-f]{32}$" }),
  stream: name,
  /** Bucket of keys, rates and schedules. */
  bucket: name,
  queues: Type.Record(
    Type.String(),
    Type.Object({
      /** What the queue's transitions are published under. */
      prefix: Type.String({ maxLength: 1_024 }),
      ackWaitMs: duration,
      dedupHorizonMs: duration,
      /** Durable consumers. */
      work: Type.Object({ high: name, normal: name, low: name, delayed: name }),
    }),
  ),
});
export type JobsBinding = Static<typeof JobsBindingSchema>;

export const isJobsBinding = schemaCheck(JobsBindingSchema);

/** The exact subjects that a process needs for the jobs of its deployment, beside its own inbox. */
export interface JobsPermissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** Tokens of an acknowledgement behind the consumer's name: deliveries, two sequences, time, pending. */
const ackTail = "*.*.*.*.*";

/** What a worker, and whoever makes jobs, may publish and hear: nothing that makes or changes a stream or consumer. */
export function jobsPermissions(binding: JobsBinding): JobsPermissions {
  const { deployment, secret, stream, bucket } = binding;
  const publish = [
    directGetSubject(stream),
    directGetSubject(kvStreamName(bucket)),
    `${kvPrefix(bucket)}.clock`,
  ];
  const subscribe: string[] = [];
  for (const [queue, { work }] of Object.entries(binding.queues)) {
    const subjects = jobQueueSubjects({ deployment, queue, secret });
    for (const type of JOB_TRANSITIONS)
      publish.push(
        `${subjects.transitions}.*.${type === "created" || type === "retried" ? `${type}.*` : type}`,
      );
    for (const note of JOB_NOTES) publish.push(`${subjects.notes}.*.${note}`);
    for (const lane of JOB_LANES) publish.push(`${subjects.work}.${lane}.*`);
    publish.push(`${subjects.park}.*`, `${subjects.updates}.*`, `${kvPrefix(bucket)}.${queue}.*.*`);
    for (const lane of [...JOB_LANES, "delayed"] as const)
      publish.push(...consumerSubjects(stream, work[lane]));
    subscribe.push(`${subjects.live}.*.*`, `${subjects.live}.*.*.*`, `${subjects.updates}.*`);
  }
  return { publish, subscribe };
}

function consumerSubjects(stream: string, consumer: string): string[] {
  const plain = `${stream}.${consumer}.${ackTail}`;
  return [
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
    `$JS.ACK.${plain}`,
    // The second form of the subject: domain and account before, a random token behind.
    `$JS.ACK.*.*.${plain}`,
    `$JS.ACK.*.*.${plain}.*`,
  ];
}
