import type { Fixed } from "../schema/schema-like.ts";
import { type Duration, parseDuration, parseSize, type Size } from "../units.ts";

/** Definition of an object store. */
export interface StoreDefinition<Optional extends boolean> {
  readonly title?: string;
  /** How long an object lives. For ever when omitted. */
  readonly ttl?: Duration;
  /** Largest object. */
  readonly maxObject?: Size;
  /** Largest sum of all objects. */
  readonly maxTotal?: Size;
  /** The participant also runs where the store is not bound; the handle is then `undefined`. */
  readonly optional?: Optional;
}

/** An object store of a participant. */
export interface StoreResource<Optional extends boolean = boolean> {
  readonly kind: "store";
  readonly title: string | undefined;
  readonly ttlMs: number | undefined;
  readonly maxObjectBytes: number | undefined;
  readonly maxTotalBytes: number | undefined;
  readonly optional: Optional;
}

/** Defines an object store. */
export function store<Optional extends boolean = false>(
  definition?: StoreDefinition<Optional>,
): StoreResource<Fixed<Optional>>;
export function store(definition: StoreDefinition<boolean> = {}): StoreResource {
  const { ttl, maxObject, maxTotal } = definition;
  return {
    kind: "store",
    title: definition.title,
    ttlMs: ttl === undefined ? undefined : parseDuration(ttl, "store ttl"),
    maxObjectBytes: maxObject === undefined ? undefined : parseSize(maxObject, "store maxObject"),
    maxTotalBytes: maxTotal === undefined ? undefined : parseSize(maxTotal, "store maxTotal"),
    optional: definition.optional ?? false,
  };
}
