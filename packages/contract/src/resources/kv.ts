import { DefinitionError } from "../errors/definition-error.ts";
import { compileSchema } from "../schema/compile-schema.ts";
import type { CompiledSchema } from "../schema/compiled-schema.ts";
import type { Carried, Fixed, SchemaLike } from "../schema/schema-like.ts";
import { type Duration, parseDuration, parseSize, requireCount, type Size } from "../units.ts";

/** Definition of a key-value bucket. */
export interface KvDefinition<V extends SchemaLike, Optional extends boolean> {
  readonly title?: string;
  /** Schema of every value. */
  readonly value: V;
  /** Revisions kept per key, 1 to 64. Default 1. */
  readonly history?: number;
  /** How long a value lives. For ever when omitted. */
  readonly ttl?: Duration;
  /** Largest value. */
  readonly maxValue?: Size;
  /** Version of the representation. Default 1. */
  readonly version?: number;
  /** Functions from each older version, applied when a value is read; a read never writes. */
  readonly migrate?: Readonly<Record<number, (old: unknown) => unknown>>;
  /** The participant also runs where the bucket is not bound; the handle is then `undefined`. */
  readonly optional?: Optional;
}

/** A key-value bucket of a participant. */
export interface KvResource<V extends SchemaLike = SchemaLike, Optional extends boolean = boolean> {
  readonly kind: "kv";
  readonly title: string | undefined;
  readonly schemas: { readonly value: V };
  readonly value: CompiledSchema;
  readonly history: number;
  readonly ttlMs: number | undefined;
  readonly maxValueBytes: number | undefined;
  readonly version: number;
  readonly migrate: Readonly<Record<number, (old: unknown) => unknown>>;
  readonly optional: Optional;
}

/** Defines a key-value bucket. */
export function kv<V extends SchemaLike, Optional extends boolean = false>(
  definition: KvDefinition<V, Optional> & { readonly value: Carried<V> },
): KvResource<Fixed<V>, Fixed<Optional>>;
export function kv(definition: KvDefinition<SchemaLike, boolean>): KvResource {
  const { value } = definition;
  const history = requireCount(definition.history ?? 1, "kv history");
  if (history > 64)
    throw new DefinitionError({ place: "kv history", problem: "at most 64 revisions can be kept" });
  return {
    kind: "kv",
    title: definition.title,
    schemas: { value },
    value: compileSchema(value),
    history,
    ttlMs: definition.ttl === undefined ? undefined : parseDuration(definition.ttl, "kv ttl"),
    maxValueBytes:
      definition.maxValue === undefined ? undefined : parseSize(definition.maxValue, "kv maxValue"),
    ...versioned("kv", definition),
    optional: definition.optional ?? false,
  };
}

/** A version and the functions from older ones. */
export interface Versioned {
  readonly version?: number;
  readonly migrate?: Readonly<Record<number, (old: unknown) => unknown>>;
}

/** Checks that there is a way from each version on which somebody said there is one. */
export function versioned(place: string, definition: Versioned): Required<Versioned> {
  const version = requireCount(definition.version ?? 1, `${place} version`);
  const migrate = definition.migrate ?? {};
  for (const from of Object.keys(migrate)) {
    const older = Number(from);
    if (Number.isSafeInteger(older) && older >= 1 && older < version) continue;
    throw new DefinitionError({
      place: `${place} migrate`,
      problem: `${from} is not a version older than ${version}`,
      hint: "Keys are the older versions; version is the newest",
    });
  }
  return { version, migrate };
}
