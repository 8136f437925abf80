import { type Static, Type } from "typebox";
import { Compile } from "typebox/compile";
import { CliFailure } from "../failure.ts";

const MaybeSchema = Type.Union([Type.Null(), Type.Record(Type.String(), Type.Unknown())]);

const RpcArtifact = Type.Object({
  input: MaybeSchema,
  output: MaybeSchema,
  errors: Type.Record(Type.String(), MaybeSchema),
  idempotent: Type.Union([Type.Boolean(), Type.Object({ key: Type.String() })]),
  coalesce: Type.Boolean(),
  download: Type.Boolean(),
});

const FeedArtifact = Type.Object({
  input: MaybeSchema,
  event: Type.Record(Type.String(), Type.Unknown()),
  errors: Type.Record(Type.String(), MaybeSchema),
});

const ApiArtifact = Type.Object({
  id: Type.String(),
  rpc: Type.Record(Type.String(), RpcArtifact),
  feeds: Type.Record(Type.String(), FeedArtifact),
});

const ParticipantArtifact = Type.Object({
  format: Type.Literal("trellis.participant/v1"),
  kind: Type.Union([Type.Literal("service"), Type.Literal("app")]),
  id: Type.String(),
  implements: Type.Array(ApiArtifact),
  uses: Type.Array(Type.Object({ api: Type.String(), rpc: Type.Record(Type.String(), RpcArtifact) })),
});

/** The part of an API's artifact by which its RPCs can be called and its feeds opened. */
export type CallableApi = Static<typeof ApiArtifact>;
export type CallableRpc = Static<typeof RpcArtifact>;
export type CallableFeed = Static<typeof FeedArtifact>;

const api = Compile(ApiArtifact);
const participant = Compile(ParticipantArtifact);

export function readApiArtifact(value: unknown): CallableApi {
  if (api.Check(value)) return value;
  throw new CliFailure(
    "The platform's contract of this API is of a form that this version of trellis does not know.",
    {
      hint: "Use the version of trellis that the platform runs.",
    },
  );
}

export function isParticipantArtifact(value: unknown): value is Static<typeof ParticipantArtifact> {
  return participant.Check(value);
}

export function readParticipantArtifact(value: unknown): Static<typeof ParticipantArtifact> {
  if (participant.Check(value)) return value;
  throw new CliFailure(
    "This participant's contract is of a form that this version of trellis does not know.",
    {
      hint: "Use the version of trellis that the platform runs.",
    },
  );
}
