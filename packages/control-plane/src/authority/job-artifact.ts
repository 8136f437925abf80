import { Type } from "typebox";

const Count = Type.Integer({ minimum: 1, maximum: 1_000_000 });
const Span = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const nullable = <S extends ReturnType<typeof Type.Object>>(schema: S) => Type.Union([schema, Type.Null()]);

const Retry = Type.Object({
  attempts: Count,
  backoff: Type.Union([
    Type.Object({ kind: Type.Literal("delays"), delaysMs: Type.Array(Span, { maxItems: 1_000 }) }),
    Type.Object({
      kind: Type.Literal("exponential"),
      baseMs: Span,
      factor: Type.Number({ minimum: 1 }),
      maxMs: Type.Optional(Span),
      jitter: Type.Number({ minimum: 0, maximum: 1 }),
    }),
  ]),
});

/** A job queue as an installed contract has it: what operators and projections decide by. */
export const JobArtifactSchema = Type.Object({
  optional: Type.Boolean(),
  retry: Retry,
  deadlineMs: Type.Union([Span, Type.Null()]),
  keyConcurrency: nullable(
    Type.Object({
      key: Type.Array(Type.String({ maxLength: 1_024 }), { maxItems: 16 }),
      maxActive: Count,
      heartbeatIntervalMs: Span,
      heartbeatTtlMs: Span,
      stalePolicy: Type.Union([Type.Literal("fail-stale"), Type.Literal("block")]),
    }),
  ),
  queue: nullable(
    Type.Object({
      maxQueuedPerKey: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
      whenFull: Type.Union([
        Type.Literal("reject"),
        Type.Literal("coalesce"),
        Type.Literal("replace-oldest"),
      ]),
    }),
  ),
  concurrency: Count,
  ackWaitMs: Type.Integer({ minimum: 100, maximum: 3_600_000 }),
  maxCrashes: Count,
  rateLimit: nullable(Type.Object({ limit: Count, perMs: Span, perKey: Type.Boolean() })),
  schedules: Type.Record(
    Type.String(),
    Type.Object({
      cron: Type.String({ maxLength: 256 }),
      timeZone: Type.String({ maxLength: 64 }),
      missed: Type.Union([Type.Literal("skip"), Type.Literal("once")]),
      payload: Type.Unknown(),
    }),
  ),
  retentionMs: Type.Integer({ minimum: 1_000, maximum: Number.MAX_SAFE_INTEGER }),
  dedupHorizonMs: Type.Integer({ minimum: 1_000, maximum: Number.MAX_SAFE_INTEGER }),
});
