import { type Static, Type } from "typebox";
import { JobsBindingSchema } from "../jobs/jobs-binding.ts";
import { CLOSED, KeyIdField, TextField, TimeField, TokenField } from "../statements/fields.ts";

/** A resource's alias in its participant's contract. */
const Alias = "^[A-Za-z][A-Za-z0-9]{0,63}$";
const Limit = Type.Union([Type.Integer({ minimum: 1 }), Type.Null()]);

/** A bucket as it is called and kept; the subjects of its keys follow from its name. */
export const KvBindingSchema = Type.Object(
  {
    bucket: TokenField,
    history: Type.Integer({ minimum: 1, maximum: 64 }),
    ttlMs: Limit,
    maxValueBytes: Limit,
    /** Where the stream republishes what is stored; the keys' own tokens follow. */
    watch: TextField,
  },
  CLOSED,
);

export type KvBinding = Readonly<Static<typeof KvBindingSchema>>;

/** An object store as it is called and kept. */
export const StoreBindingSchema = Type.Object(
  {
    name: TokenField,
    ttlMs: Limit,
    maxObjectBytes: Limit,
    maxTotalBytes: Limit,
    /** Where descriptions are republished; their own tokens follow. */
    watch: TextField,
  },
  CLOSED,
);

export type StoreBinding = Readonly<Static<typeof StoreBindingSchema>>;

/** A durable consumer of events; how its events are handled is the contract's own business. */
export const ConsumerBindingSchema = Type.Object(
  {
    stream: TokenField,
    /** Durable name. */
    consumer: TokenField,
    ackWaitMs: Type.Integer({ minimum: 1 }),
    /** Where its dead letters go: a subject's beginning. */
    deadLetters: TextField,
  },
  CLOSED,
);

export type ConsumerBinding = Readonly<Static<typeof ConsumerBindingSchema>>;

const byAlias = <S extends ReturnType<typeof Type.Object>>(schema: S) =>
  Type.Record(Type.String({ pattern: Alias }), schema, { additionalProperties: false });

/** Which physical resources stand behind the aliases of one deployment. */
export const ResourceBindingsSchema = Type.Object(
  {
    version: Type.Literal(1),
    issuer: KeyIdField,
    deployment: TokenField,
    kv: byAlias(KvBindingSchema),
    store: byAlias(StoreBindingSchema),
    consumers: byAlias(ConsumerBindingSchema),
    /** The jobs of the deployment, all queues together. */
    jobs: Type.Union([JobsBindingSchema, Type.Null()]),
    issuedAt: TimeField,
    expiresAt: TimeField,
  },
  CLOSED,
);

export type ResourceBindings = Readonly<Static<typeof ResourceBindingsSchema>>;

/** The bindings as a kind of statement. */
export const RESOURCES = { label: "trellis.resources.v1", schema: ResourceBindingsSchema } as const;
