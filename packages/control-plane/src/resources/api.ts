import { defineApi, defineError, feed, reserved, rpc } from "@trellis/contract";
import { Type } from "typebox";
import type { HandlerOf } from "../core/api.ts";
import { CursorInvalid, NotKnown, RevisionStale } from "../core/errors.ts";
import { Id } from "../core/schemas.ts";

/** It cannot be done with this resource, or with what is in it. */
export const ResourceRefused = defineError("ResourceRefused", {
  data: Type.Object({ problem: Type.String() }),
  message: ({ problem }) => problem,
});
/** A deployment still declares it: whoever destroys it takes a running service's data away. */
export const ResourceAttached = defineError("ResourceAttached", {
  data: Type.Object({ alias: Type.String() }),
  message: ({ alias }) => `The deployment's contract declares "${alias}": it is in use.`,
});
/** Some of the bytes went to another process of the platform, or too late: begin again. */
export const TransferLost = defineError("TransferLost", {
  message: () => "The transfer is no longer known; begin it again.",
});

/** Most bytes of an object that one call carries: as base64 they must fit into a message. */
export const CHUNK_BYTES = 384 * 1024;

const Time = Type.Integer({ description: "Milliseconds since the epoch." });
const Alias = Type.String({ pattern: "^[A-Za-z][A-Za-z0-9]{0,63}$" });
const Key = Type.String({ minLength: 1, maxLength: 4_096 });
const Revision = Type.Integer({ minimum: 1 });
const Count = Type.Integer({ minimum: 0 });
const Base64 = Type.String({ maxLength: Math.ceil(CHUNK_BYTES / 3) * 4, pattern: "^[A-Za-z0-9+/]*={0,2}$" });
const Kind = Type.Union([
  Type.Literal("kv"),
  Type.Literal("store"),
  Type.Literal("consumer"),
  Type.Literal("dead-letters"),
  Type.Literal("jobs"),
]);
/** A resource of a deployment, by its id or name. */
const place = { deployment: Id, alias: Alias };
const page = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: "Default 100." })),
  cursor: Type.Optional(Type.String({ maxLength: 8_192 })),
};
const next = { cursor: Type.Optional(Type.String()) };
const prefix = Type.Optional(Type.String({ maxLength: 4_096 }));

export const ResourceSchema = Type.Object({
  deployment: Id,
  /** Name of the deployment. */
  service: Type.String(),
  kind: Kind,
  alias: Type.String({ description: "Empty for what a deployment has one of." }),
  state: Type.Union([Type.Literal("attached"), Type.Literal("detached")]),
  createdAt: Time,
  updatedAt: Time,
});
/** Absent: the broker does not have it. */
const Usage = Type.Optional(Type.Object({ messages: Count, bytes: Count }));
/** `Limits` are those that the broker was told; `null`: none. */
const Limits = Type.Record(Type.String(), Type.Union([Type.Integer(), Type.Null()]));

const Entry = Type.Object({
  kind: Type.Literal("value"),
  key: Type.String(),
  value: Type.Unknown(),
  revision: Revision,
  updatedAt: Time,
  expiresAt: Type.Optional(Time),
});
const Deleted = Type.Object({
  kind: Type.Literal("deleted"),
  key: Type.String(),
  revision: Revision,
  updatedAt: Time,
});
/** What is stored cannot be read. */
const Invalid = Type.Object({
  kind: Type.Literal("invalid"),
  key: Type.String(),
  problem: Type.String(),
  revision: Revision,
  updatedAt: Type.Optional(Time),
});
const Ready = Type.Object({ kind: Type.Literal("ready") });

export const ObjectSchema = Type.Object({
  key: Type.String(),
  size: Count,
  updatedAt: Time,
  digest: Type.String(),
  contentType: Type.Optional(Type.String()),
  metadata: Type.Record(Type.String(), Type.String()),
});

const kvActions = {
  "Resources.Kv.Keys": rpc({
    description:
      "The keys that have a value, sorted. Reads all of them: for buckets of up to some ten thousand.",
    input: Type.Object({ ...place, ...page, prefix }),
    output: Type.Object({ keys: Type.Array(Type.String()), ...next }),
    errors: [NotKnown, CursorInvalid, ResourceRefused],
    idempotent: true,
  }),
  "Resources.Kv.Get": rpc({
    description: "What is stored under a key, as it was written; nothing is migrated.",
    input: Type.Object({ ...place, key: Key, revision: Type.Optional(Revision) }),
    output: Type.Object({ entry: Type.Union([Entry, Invalid]) }),
    errors: [NotKnown, ResourceRefused],
    idempotent: true,
  }),
  "Resources.Kv.Put": rpc({
    description:
      "Writes a value that fits the contract. `revision`: only over this one; 0: only over nothing.",
    input: Type.Object({ ...place, key: Key, value: Type.Unknown(), revision: Type.Optional(Count) }),
    output: Type.Object({ revision: Revision }),
    errors: [NotKnown, RevisionStale, ResourceRefused],
  }),
  "Resources.Kv.Delete": rpc({
    input: Type.Object({ ...place, key: Key, revision: Type.Optional(Revision) }),
    output: Type.Object({ revision: Revision }),
    errors: [NotKnown, RevisionStale, ResourceRefused],
  }),
} as const;

const storeActions = {
  "Resources.Store.List": rpc({
    input: Type.Object({ ...place, ...page, prefix }),
    output: Type.Object({
      objects: Type.Array(ObjectSchema),
      unreadable: Type.Array(Type.String()),
      ...next,
    }),
    errors: [NotKnown, CursorInvalid, ResourceRefused],
    idempotent: true,
  }),
  "Resources.Store.Head": rpc({
    input: Type.Object({ ...place, key: Key }),
    output: Type.Object({ object: ObjectSchema }),
    errors: [NotKnown, ResourceRefused],
    idempotent: true,
  }),
  "Resources.Store.Read": rpc({
    description:
      "The next bytes of an object. The first call begins at 0 and gives a transfer, which the others name; each names where it is to go on.",
    input: Type.Object({ ...place, key: Key, transfer: Type.Optional(Id), offset: Count }),
    output: Type.Object({ transfer: Id, object: ObjectSchema, data: Base64, done: Type.Boolean() }),
    errors: [NotKnown, ResourceRefused, TransferLost],
  }),
  "Resources.Store.Write": rpc({
    description:
      "The next bytes of an object, which is there once the last of them came and its digest is the one that was sent.",
    input: Type.Object({
      ...place,
      key: Key,
      transfer: Type.Optional(Id),
      offset: Count,
      data: Base64,
      contentType: Type.Optional(Type.String({ maxLength: 255 })),
      /** With the last bytes: `SHA-256=` and the base64url of the hash of all of them. */
      digest: Type.Optional(Type.String({ maxLength: 128 })),
    }),
    output: Type.Object({ transfer: Id, received: Count, object: Type.Optional(ObjectSchema) }),
    errors: [NotKnown, ResourceRefused, TransferLost],
  }),
  "Resources.Store.Delete": rpc({
    input: Type.Object({ ...place, key: Key }),
    output: Type.Object({ deleted: Type.Boolean() }),
    errors: [NotKnown, ResourceRefused],
    idempotent: true,
  }),
} as const;

/** The platform's view of what deployments keep, and of what is in it. */
export const resourcesApi = defineApi(
  "trellis.resources@v1",
  {
    title: "Trellis resources",
    rpc: {
      "Resources.List": rpc({
        input: Type.Object({ ...page, deployment: Type.Optional(Id) }),
        output: Type.Object({ resources: Type.Array(ResourceSchema), ...next }),
        errors: [CursorInvalid],
        idempotent: true,
      }),
      "Resources.Get": rpc({
        input: Type.Object({ deployment: Id, kind: Kind, alias: Type.String({ maxLength: 64 }) }),
        output: Type.Object({ resource: ResourceSchema, limits: Limits, usage: Usage }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Resources.Destroy": rpc({
        description:
          "Deletes a detached resource with everything in it; with `force` also one that is in use.",
        input: Type.Object({
          deployment: Id,
          kind: Kind,
          alias: Type.String({ maxLength: 64 }),
          force: Type.Optional(Type.Boolean()),
        }),
        output: Type.Object({ destroyed: Type.Boolean() }),
        errors: [NotKnown, ResourceAttached, ResourceRefused],
      }),
      ...kvActions,
      ...storeActions,
    },
    feeds: {
      "Resources.Kv.Watch": feed({
        description: "What is there, then `ready`, then every change.",
        input: Type.Object({ ...place, key: Type.Optional(Key), prefix }),
        event: Type.Union([Entry, Deleted, Invalid, Ready]),
        errors: [NotKnown, ResourceRefused],
      }),
    },
  },
  reserved,
);

type Actions = (typeof resourcesApi)["rpc"];

/** The actions of the API as plain functions of their input. */
export type ResourcesHandlers = { readonly [Name in keyof Actions]: HandlerOf<Actions[Name]> };

/** Those of one part: `Kv`, `Store`. */
export type ResourcesHandlersOf<Part extends string> = Pick<
  ResourcesHandlers,
  Extract<keyof ResourcesHandlers, `Resources.${Part}.${string}`>
>;
