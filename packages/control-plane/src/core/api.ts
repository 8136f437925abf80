import {
  defineApi,
  defineError,
  type InputOf,
  type OutputOf,
  type RpcAction,
  reserved,
  rpc,
} from "@trellis/contract";
import type { Result } from "@trellis/result";
import { Type } from "typebox";

const Id = Type.String({ minLength: 1, maxLength: 256 });
const Time = Type.Integer({ description: "Milliseconds since the epoch." });
const Kind = Type.Union([Type.Literal("service"), Type.Literal("app")]);

/** A list is asked for page by page; the cursor is opaque and goes back as it came. */
const page = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: "Default 100." })),
  cursor: Type.Optional(Type.String({ maxLength: 512 })),
};
const next = { cursor: Type.Optional(Type.String()) };

export const ParticipantSchema = Type.Object({
  id: Id,
  revision: Type.Integer(),
  digest: Type.String(),
  kind: Kind,
  installedAt: Time,
});

export const DeploymentSchema = Type.Object({
  id: Id,
  name: Type.String(),
  participant: Type.Object({ id: Id, digest: Type.String() }),
  disabled: Type.Boolean(),
  epoch: Type.Integer(),
  createdAt: Time,
});

export const InstanceSchema = Type.Object({
  id: Id,
  deployment: Id,
  identityKey: Type.String(),
  name: Type.String(),
  disabled: Type.Boolean(),
  ephemeral: Type.Boolean(),
  createdAt: Time,
});

export const ConnectionSchema = Type.Object({
  id: Id,
  instance: Id,
  deployment: Id,
  participant: Type.Object({ id: Id, digest: Type.String() }),
  state: Type.Union([Type.Literal("issued"), Type.Literal("connected"), Type.Literal("disconnected")]),
  createdAt: Time,
  updatedAt: Time,
});

/** What was named does not exist. */
export const NotKnown = defineError("NotKnown", {
  data: Type.Object({ kind: Type.String(), id: Type.String() }),
  message: ({ kind, id }) => `There is no ${kind} "${id}".`,
});
/** The contract that was sent cannot be installed. */
export const ArtifactInvalid = defineError("ArtifactInvalid", {
  data: Type.Object({ problem: Type.String() }),
  message: ({ problem }) => problem,
});
/** A deployment of that name exists, or the name is not one. */
export const NameRefused = defineError("NameRefused", {
  data: Type.Object({
    name: Type.String(),
    problem: Type.Union([Type.Literal("name_taken"), Type.Literal("name_illegal")]),
  }),
  message: ({ name, problem }) =>
    problem === "name_taken"
      ? `A deployment is called "${name}" already.`
      : `"${name}" is not a deployment's name.`,
});
/** The identity key is not a key, or belongs to an instance already. */
export const IdentityRefused = defineError("IdentityRefused", {
  data: Type.Object({
    problem: Type.Union([Type.Literal("identity_taken"), Type.Literal("identity_malformed")]),
  }),
});
/** The cursor is not one that a list of this kind gave. */
export const CursorInvalid = defineError("CursorInvalid");

const byId = Type.Object({ id: Id });
const reason = Type.Optional(Type.String({ maxLength: 200 }));

/** The platform's own API: what is installed, deployed, provisioned and connected. */
export const coreApi = defineApi(
  "trellis.core@v1",
  {
    title: "Trellis core",
    rpc: {
      "Core.Participants.List": rpc({
        input: Type.Object(page),
        output: Type.Object({ participants: Type.Array(ParticipantSchema), ...next }),
        errors: [CursorInvalid],
        idempotent: true,
      }),
      "Core.Participants.Get": rpc({
        input: byId,
        output: Type.Object({
          participant: ParticipantSchema,
          artifact: Type.Record(Type.String(), Type.Unknown()),
        }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Core.Participants.Install": rpc({
        input: Type.Object({ artifact: Type.Record(Type.String(), Type.Unknown()) }),
        output: Type.Object({ participant: ParticipantSchema, changed: Type.Boolean() }),
        errors: [ArtifactInvalid],
        idempotent: true,
      }),
      "Core.Deployments.List": rpc({
        input: Type.Object(page),
        output: Type.Object({ deployments: Type.Array(DeploymentSchema), ...next }),
        errors: [CursorInvalid],
        idempotent: true,
      }),
      "Core.Deployments.Get": rpc({
        input: byId,
        output: Type.Object({ deployment: DeploymentSchema }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Core.Deployments.Create": rpc({
        input: Type.Object({ participant: Id, name: Type.Optional(Type.String({ maxLength: 200 })) }),
        output: Type.Object({ deployment: DeploymentSchema }),
        errors: [NotKnown, NameRefused],
      }),
      "Core.Deployments.Update": rpc({
        description: "Moves the deployment to the participant's current revision, or to the one of a digest.",
        input: Type.Object({ id: Id, digest: Type.Optional(Type.String({ maxLength: 64 })) }),
        output: Type.Object({ deployment: DeploymentSchema }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Core.Deployments.Disable": rpc({
        input: Type.Object({ id: Id, reason }),
        output: Type.Object({ deployment: DeploymentSchema }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Core.Deployments.Enable": rpc({
        input: byId,
        output: Type.Object({ deployment: DeploymentSchema }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Core.Instances.List": rpc({
        input: Type.Object({ ...page, deployment: Type.Optional(Id) }),
        output: Type.Object({ instances: Type.Array(InstanceSchema), ...next }),
        errors: [CursorInvalid],
        idempotent: true,
      }),
      "Core.Instances.Get": rpc({
        input: byId,
        output: Type.Object({ instance: InstanceSchema }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Core.Instances.Provision": rpc({
        description: "Without an identity key one is made, and its seed is in the answer: this once.",
        input: Type.Object({
          deployment: Id,
          name: Type.Optional(Type.String({ maxLength: 200 })),
          identityKey: Type.Optional(Type.String({ maxLength: 64 })),
        }),
        output: Type.Object({ instance: InstanceSchema, seed: Type.Optional(Type.String()) }),
        errors: [NotKnown, IdentityRefused],
      }),
      "Core.Instances.Disable": rpc({
        input: Type.Object({ id: Id, reason }),
        output: Type.Object({ instance: InstanceSchema }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Core.Instances.Enable": rpc({
        input: byId,
        output: Type.Object({ instance: InstanceSchema }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Core.Connections.List": rpc({
        input: Type.Object({ ...page, deployment: Type.Optional(Id) }),
        output: Type.Object({ connections: Type.Array(ConnectionSchema), ...next }),
        errors: [CursorInvalid],
        idempotent: true,
      }),
      "Core.Connections.Get": rpc({
        input: byId,
        output: Type.Object({ connection: ConnectionSchema }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Core.Connections.Kick": rpc({
        description: "Closes the socket. It comes back, unless `revoke` ends the connection for good.",
        input: Type.Object({ id: Id, revoke: Type.Optional(Type.Boolean()), reason }),
        output: Type.Object({ kicked: Type.Boolean() }),
        errors: [NotKnown],
      }),
    },
  },
  reserved,
);

type CoreActions = (typeof coreApi)["rpc"];

type HandlerOf<A> =
  A extends RpcAction<infer I, infer O, infer E>
    ? (input: OutputOf<I>) => Promise<Result<InputOf<O>, InstanceType<E>>>
    : never;

/** Every action of {@link coreApi} as a plain function of its input. */
export type CoreHandlers = { readonly [Name in keyof CoreActions]: HandlerOf<CoreActions[Name]> };

/** The handlers of one noun. */
export type CoreHandlersOf<Noun extends string> = Pick<
  CoreHandlers,
  Extract<keyof CoreHandlers, `Core.${Noun}.${string}`>
>;
