import { defineApi, type InputOf, type OutputOf, type RpcAction, reserved, rpc } from "@trellis/contract";
import type { Result } from "@trellis/result";
import { Type } from "typebox";
import {
  ArtifactInvalid,
  BindingRefused,
  CursorInvalid,
  IdentityRefused,
  NameRefused,
  NotKnown,
  PlatformOwned,
  RevisionStale,
} from "./errors.ts";
import {
  ApiSchema,
  BindingSchema,
  ConnectionSchema,
  DeploymentSchema,
  GrantsViewSchema,
  Id,
  InstanceSchema,
  ParticipantSchema,
} from "./schemas.ts";

/** A list is asked for page by page; the cursor is opaque and goes back as it came. */
const page = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: "Default 100." })),
  cursor: Type.Optional(Type.String({ maxLength: 512 })),
};
const next = { cursor: Type.Optional(Type.String()) };

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
        output: Type.Object({ deployment: DeploymentSchema, bindings: Type.Array(BindingSchema) }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Core.Deployments.Create": rpc({
        input: Type.Object({ participant: Id, name: Type.Optional(Type.String({ maxLength: 200 })) }),
        output: Type.Object({ deployment: DeploymentSchema }),
        errors: [NotKnown, NameRefused, PlatformOwned],
      }),
      "Core.Deployments.Update": rpc({
        description: "Moves the deployment to the participant's current revision, or to the one of a digest.",
        input: Type.Object({ id: Id, digest: Type.Optional(Type.String({ maxLength: 64 })) }),
        output: Type.Object({ deployment: DeploymentSchema }),
        errors: [NotKnown, PlatformOwned],
        idempotent: true,
      }),
      "Core.Deployments.Bind": rpc({
        description:
          "Chooses which deployment provides a used API: needed where several do. Without a provider the choice is withdrawn.",
        input: Type.Object({ id: Id, api: Id, provider: Type.Optional(Id) }),
        output: Type.Object({ bindings: Type.Array(BindingSchema) }),
        errors: [NotKnown, PlatformOwned, BindingRefused],
        idempotent: true,
      }),
      "Core.Deployments.Disable": rpc({
        input: Type.Object({ id: Id, reason }),
        output: Type.Object({ deployment: DeploymentSchema }),
        errors: [NotKnown, PlatformOwned],
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
          ephemeral: Type.Optional(
            Type.Boolean({
              description: "It is removed when its last connection has been gone for a while.",
            }),
          ),
        }),
        output: Type.Object({ instance: InstanceSchema, seed: Type.Optional(Type.String()) }),
        errors: [NotKnown, IdentityRefused, PlatformOwned],
      }),
      "Core.Instances.Disable": rpc({
        input: Type.Object({ id: Id, reason }),
        output: Type.Object({ instance: InstanceSchema }),
        errors: [NotKnown, PlatformOwned],
        idempotent: true,
      }),
      "Core.Instances.Enable": rpc({
        input: byId,
        output: Type.Object({ instance: InstanceSchema }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Core.Apis.List": rpc({
        description: "The APIs that deployments provide, by id.",
        input: Type.Object(page),
        output: Type.Object({ apis: Type.Array(ApiSchema), ...next }),
        errors: [CursorInvalid],
        idempotent: true,
      }),
      "Core.Apis.Get": rpc({
        description: "An API with its schemas, as its first provider that is not disabled has it.",
        input: byId,
        output: Type.Object({ api: ApiSchema, artifact: Type.Record(Type.String(), Type.Unknown()) }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Core.Grants.Get": rpc({
        input: Type.Object({ deployment: Id }),
        output: Type.Object({ grants: GrantsViewSchema }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Core.Grants.Set": rpc({
        description:
          "Says which actions of the platform's own API a deployment may call, beside that its contract uses them.",
        input: Type.Object({
          deployment: Id,
          rpc: Type.Array(Type.String({ maxLength: 128 }), { maxItems: 200 }),
          revision: Type.Optional(Type.Integer({ description: "Refused unless it still has this one." })),
        }),
        output: Type.Object({ grants: GrantsViewSchema }),
        errors: [NotKnown, PlatformOwned, RevisionStale],
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
        errors: [NotKnown, PlatformOwned],
      }),
    },
  },
  reserved,
);

type CoreActions = (typeof coreApi)["rpc"];

/** An action as a plain function of its input. */
export type HandlerOf<A> =
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
