import { Type } from "typebox";

export const Id = Type.String({ minLength: 1, maxLength: 256 });
const Time = Type.Integer({ description: "Milliseconds since the epoch." });
const Kind = Type.Union([Type.Literal("service"), Type.Literal("app")]);

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

/** Which deployment an administrator chose to provide a used API. */
export const BindingSchema = Type.Object({ api: Id, provider: Id });

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

/** An API as it is deployed: what can be called, and who answers. */
export const ApiSchema = Type.Object({
  id: Id,
  /** Names of its RPCs. */
  rpc: Type.Array(Type.String()),
  /** Names of its feeds. */
  feeds: Type.Array(Type.String()),
  providers: Type.Array(
    Type.Object({ deployment: Id, name: Type.String(), participant: Id, disabled: Type.Boolean() }),
  ),
});

/** Which actions of the platform's own API a deployment may call; `*` stands for all of them, later ones too. */
export const GrantsViewSchema = Type.Object({
  deployment: Id,
  /** Counts the changes; 0 when nothing was ever granted. */
  revision: Type.Integer(),
  rpc: Type.Array(Type.String()),
});
