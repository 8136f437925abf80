import { compileSchema } from "../schema/compile-schema.ts";
import type { CompiledSchema } from "../schema/compiled-schema.ts";
import type { Carried, Fixed, SchemaLike } from "../schema/schema-like.ts";
import { type Duration, parseDuration } from "../units.ts";
import { type Versioned, versioned } from "./kv.ts";

/** Definition of state that belongs to the participant's principal (a user of an app, say). */
export interface StateDefinition<V extends SchemaLike> extends Versioned {
  readonly title?: string;
  readonly value: V;
  /** How long a value lives. For ever when omitted. */
  readonly ttl?: Duration;
}

/** State of a participant. */
export interface StateResource<V extends SchemaLike = SchemaLike> {
  readonly kind: "state";
  readonly title: string | undefined;
  readonly schemas: { readonly value: V };
  readonly value: CompiledSchema;
  readonly ttlMs: number | undefined;
  readonly version: number;
  readonly migrate: Readonly<Record<number, (old: unknown) => unknown>>;
}

/** Defines state. */
export function state<V extends SchemaLike>(
  definition: StateDefinition<V> & { readonly value: Carried<V> },
): StateResource<Fixed<V>>;
export function state(definition: StateDefinition<SchemaLike>): StateResource {
  const { value } = definition;
  return {
    kind: "state",
    title: definition.title,
    schemas: { value },
    value: compileSchema(value),
    ttlMs: definition.ttl === undefined ? undefined : parseDuration(definition.ttl, "state ttl"),
    ...versioned("state", definition),
  };
}
