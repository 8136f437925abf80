import type { JobPolicy } from "@trellis/contract";
import { kvPrefix, kvStreamName } from "../kv/kv-subject.ts";
import { requireToken } from "../subjects/token.ts";
import { JOB_LANES, type JobLane, jobQueueSubjects, queueTail } from "./job-subjects.ts";
import type { JobsBinding } from "./jobs-binding.ts";

export interface JobsLayoutInput {
  readonly deployment: string;
  /** The stable name of the deployment: what events call the service. */
  readonly service: string;
  /** 32 hexadecimal characters, made once per deployment. */
  readonly secret: string;
  readonly queues: Readonly<Record<string, Pick<JobPolicy, "ackWaitMs" | "dedupHorizonMs">>>;
  /** Copies of everything. Default 1. */
  readonly replicas?: number;
}

/** A stream as JetStream's API takes it. Durations are in nanoseconds. */
export interface StreamLayout {
  readonly name: string;
  readonly subjects: readonly string[];
  readonly retention: "limits";
  readonly storage: "file";
  readonly discard: "old" | "new";
  readonly num_replicas: number;
  readonly max_msgs_per_subject: number;
  readonly duplicate_window: number;
  readonly allow_direct: true;
  readonly allow_msg_ttl: true;
  readonly allow_msg_schedules?: true;
  readonly deny_delete: boolean;
  readonly republish?: { readonly src: string; readonly dest: string };
}

/** A durable pull consumer as JetStream's API takes it. */
export interface ConsumerLayout {
  readonly durable_name: string;
  readonly filter_subjects: readonly string[];
  readonly ack_policy: "explicit";
  readonly deliver_policy: "all";
  readonly ack_wait: number;
  readonly max_deliver: number;
  readonly max_ack_pending: number;
  readonly max_waiting: number;
}

/** What the jobs of a deployment need of the broker, and how its processes are told. */
export interface JobsLayout {
  readonly stream: StreamLayout;
  readonly consumers: readonly ConsumerLayout[];
  readonly bucket: StreamLayout;
  readonly binding: JobsBinding;
}

const maxAckPending = 20_000;
const duplicateWindowNs = 2 * 60 * 1_000_000_000;

/**
 * The layout of a deployment's jobs: one stream for transitions, notes, calls to work and parked jobs; for each queue a
 * durable consumer per lane and one for jobs that are to be parked; one bucket for keys, rates and schedules.
 */
export function jobsLayout(input: JobsLayoutInput): JobsLayout {
  const { deployment, secret, service, replicas = 1 } = input;
  const stream = `JOBS_${secret}`;
  const bucket = `jobs_${secret}`;
  const queues = Object.entries(input.queues);
  const every = queueTail(deployment, "*", secret);
  return {
    stream: {
      ...common(stream, replicas),
      subjects: ["jobs", "jobnotes", "jobwork", "jobpark"].map((kind) => `${kind}.v1.${every}.>`),
      discard: "old", // "new" is refused together with schedules
      max_msgs_per_subject: -1,
      allow_msg_schedules: true,
      republish: {
        src: `jobs.v1.${every}.>`,
        dest: `joblive.v1.${queueTail(deployment, "{{wildcard(1)}}", secret)}.>`,
      },
    },
    consumers: queues.flatMap(([queue, policy]) =>
      consumersOf({ deployment, queue, secret }, policy.ackWaitMs),
    ),
    bucket: {
      ...common(kvStreamName(bucket), replicas),
      subjects: [`${kvPrefix(bucket)}.>`],
      discard: "new",
      max_msgs_per_subject: 1,
    },
    binding: {
      version: 1,
      deployment,
      service,
      secret,
      stream,
      bucket,
      queues: Object.fromEntries(
        queues.map(([queue, { ackWaitMs, dedupHorizonMs }]) => [
          queue,
          {
            prefix: jobQueueSubjects({ deployment, queue, secret }).transitions,
            ackWaitMs,
            dedupHorizonMs,
            work: {
              high: workConsumer(queue, "high"),
              normal: workConsumer(queue, "normal"),
              low: workConsumer(queue, "low"),
              delayed: workConsumer(queue, "delayed"),
            },
          },
        ]),
      ),
    },
  };
}

function common(name: string, replicas: number) {
  return {
    name,
    retention: "limits",
    storage: "file",
    num_replicas: replicas,
    duplicate_window: duplicateWindowNs,
    allow_direct: true,
    allow_msg_ttl: true,
    deny_delete: false,
  } as const;
}

function workConsumer(queue: string, lane: JobLane | "delayed"): string {
  return `${requireToken(queue, "queue")}_${lane}`;
}

function consumersOf(
  address: { deployment: string; queue: string; secret: string },
  ackWaitMs: number,
): ConsumerLayout[] {
  const { transitions, work } = jobQueueSubjects(address);
  const consumer = (lane: JobLane | "delayed", filters: readonly string[]): ConsumerLayout => ({
    durable_name: workConsumer(address.queue, lane),
    filter_subjects: filters,
    ack_policy: "explicit",
    deliver_policy: "all",
    ack_wait: ackWaitMs * 1_000_000,
    max_deliver: -1,
    max_ack_pending: maxAckPending,
    max_waiting: 512,
  });
  const lanes = JOB_LANES.map((lane) =>
    consumer(lane, [
      `${transitions}.*.created.${lane}`,
      `${transitions}.*.retried.${lane}`,
      `${work}.${lane}.*`,
    ]),
  );
  return [...lanes, consumer("delayed", [`${transitions}.*.created.delayed`])];
}
