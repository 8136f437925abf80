import { defineApi, reserved, rpc } from "@trellis/contract";
import { JOB_STATES } from "@trellis/protocol/jobs";
import { Type } from "typebox";
import { type HandlerOf } from "../core/api.ts";
import { CursorInvalid, NotKnown } from "../core/errors.ts";
import { Id } from "../core/schemas.ts";

const State = Type.Enum(JOB_STATES);
const Time = Type.Integer({ description: "Milliseconds since the epoch." });
const JobId = Type.String({ pattern: "^[A-Za-z0-9_-]{1,256}$" });

/** Which jobs; what is left out matches all. `deployment`: id or name. */
const filter = {
  deployment: Type.Optional(Id),
  queue: Type.Optional(Type.String({ maxLength: 256 })),
  states: Type.Optional(Type.Array(State, { maxItems: JOB_STATES.length })),
  since: Type.Optional(Time),
  until: Type.Optional(Time),
  error: Type.Optional(Type.String({ maxLength: 200, description: "Part of the last error." })),
};
const page = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: "Default 100." })),
  cursor: Type.Optional(Type.String({ maxLength: 1_024 })),
};
const next = { cursor: Type.Optional(Type.String()) };
const one = { deployment: Id, queue: Type.String({ maxLength: 256 }), id: JobId };
const queue = Type.Object({ deployment: Id, queue: Type.String({ maxLength: 256 }) });

/** A job in a list. */
export const JobView = Type.Object({
  id: Type.String(),
  deployment: Id,
  service: Type.String(),
  queue: Type.String(),
  state: State,
  tries: Type.Integer(),
  maxTries: Type.Optional(Type.Integer()),
  createdAt: Time,
  updatedAt: Time,
  error: Type.Optional(Type.String()),
});

const QueueView = Type.Object({
  deployment: Id,
  service: Type.String(),
  queue: Type.String(),
  paused: Type.Boolean(),
  /** Calls to work that no worker has. */
  waiting: Type.Integer(),
  /** With a worker, not yet settled. */
  running: Type.Integer(),
  /** Processes that do its jobs; see `Jobs.Workers`. */
  workers: Type.Integer(),
  /** Jobs by state. */
  states: Type.Record(Type.String(), Type.Integer()),
  oldestPendingAt: Type.Optional(Time),
});

const WorkerView = Type.Object({
  deployment: Id,
  service: Type.String(),
  queue: Type.String(),
  instance: Type.String(),
  connection: Type.String(),
  /** Handlers that run at a time, at the most, and that ran when it last told. */
  concurrency: Type.Integer(),
  running: Type.Integer(),
  /** `late`: its heartbeat is overdue. `failing`: it gets no jobs, for the reason given. */
  status: Type.Enum(["ok", "late", "failing"]),
  reason: Type.Optional(Type.String()),
  seenAt: Time,
  uptimeMs: Type.Integer(),
});

/** Of so many jobs the time in ms that half, 95 % and 99 % of them stayed below. */
const Spread = Type.Object({
  count: Type.Integer(),
  p50: Type.Optional(Type.Number()),
  p95: Type.Optional(Type.Number()),
  p99: Type.Optional(Type.Number()),
});

const Metrics = Type.Object({
  since: Time,
  until: Time,
  bucketMs: Type.Integer(),
  buckets: Type.Array(
    Type.Object({
      at: Time,
      created: Type.Integer(),
      /** Jobs that came to their end, by state. */
      ended: Type.Record(Type.String(), Type.Integer()),
    }),
  ),
  /** From creation to the begin of the last attempt, and from there to the end: of the newest that ended. */
  waitMs: Spread,
  runMs: Spread,
});

/** What became of one job, or of a page of them. */
const Changed = Type.Object({
  changed: Type.Integer(),
  /** In a state that does not allow it, or changed by somebody else meanwhile. */
  refused: Type.Integer(),
  state: Type.Optional(State),
  reason: Type.Optional(Type.String()),
  ...next,
});

const bulk = rpc({
  description:
    "Of one job, or, without an id, of the next page of those that match; go on with the cursor until there is none.",
  input: Type.Object({ ...filter, ...page, id: Type.Optional(JobId) }),
  output: Changed,
  errors: [NotKnown, CursorInvalid],
  idempotent: true,
});

/** The platform's view of all background jobs, and what operators do to them. */
export const jobsApi = defineApi(
  "trellis.jobs@v1",
  {
    title: "Trellis jobs",
    rpc: {
      "Jobs.Query": rpc({
        input: Type.Object({ ...filter, ...page }),
        output: Type.Object({ jobs: Type.Array(JobView), ...next }),
        errors: [NotKnown, CursorInvalid],
        idempotent: true,
      }),
      "Jobs.Get": rpc({
        description: "A job as its stored events tell of it now, and the events.",
        input: Type.Object(one),
        output: Type.Object({
          job: Type.Record(Type.String(), Type.Unknown()),
          events: Type.Array(
            Type.Object({
              type: Type.String(),
              state: State,
              at: Time,
              tries: Type.Integer(),
              error: Type.Optional(Type.String()),
            }),
          ),
        }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Jobs.Summary": rpc({
        input: Type.Object(filter),
        output: Type.Object({ states: Type.Record(Type.String(), Type.Integer()) }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Jobs.Metrics": rpc({
        description: "How jobs came and went in a span of time, in equal buckets.",
        input: Type.Object({
          deployment: Type.Optional(Id),
          queue: Type.Optional(Type.String({ maxLength: 256 })),
          since: Type.Optional(Time),
          until: Type.Optional(Time),
          buckets: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: "Default 60." })),
        }),
        output: Metrics,
        errors: [NotKnown],
        idempotent: true,
      }),
      "Jobs.Workers": rpc({
        description: "The processes that do jobs, from their heartbeats; one that missed two is left out.",
        input: Type.Object({ deployment: Type.Optional(Id), queue: Type.Optional(Type.String()) }),
        output: Type.Object({ workers: Type.Array(WorkerView) }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Jobs.Queues": rpc({
        input: Type.Object({ deployment: Type.Optional(Id) }),
        output: Type.Object({ queues: Type.Array(QueueView) }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Jobs.Retry": bulk,
      "Jobs.Cancel": bulk,
      "Jobs.Dismiss": bulk,
      "Jobs.PauseQueue": rpc({ input: queue, output: QueueView, errors: [NotKnown], idempotent: true }),
      "Jobs.ResumeQueue": rpc({ input: queue, output: QueueView, errors: [NotKnown], idempotent: true }),
      "Jobs.ReleaseKey": rpc({
        description: "Lets go of what a job holds of its key, where no other may take it over.",
        input: Type.Object(one),
        output: Changed,
        errors: [NotKnown],
        idempotent: true,
      }),
    },
  },
  reserved,
);

type JobsActions = (typeof jobsApi)["rpc"];

/** Every action of {@link jobsApi} as a plain function of its input. */
export type JobsHandlers = { readonly [Name in keyof JobsActions]: HandlerOf<JobsActions[Name]> };
