import type { AnyParticipant, InputOf, KvResource, OutputOf } from "@trellis/contract";
import type { KvBinding } from "@trellis/protocol";
import type { Kv } from "./kv.ts";
import { KvBucket, type KvBucketInput } from "./kv-bucket.ts";

/** The handle of one bucket; an optional one may be `undefined`. */
type Handle<R> =
  R extends KvResource<infer V, infer Optional>
    ? Kv<InputOf<V>, OutputOf<V>> | (Optional extends true ? undefined : never)
    : never;

/** `service.kv`: the buckets of a participant, by alias. */
export type KvFacade<P extends AnyParticipant> = P["kv"] extends infer Buckets
  ? { readonly [Alias in keyof Buckets]: Handle<Buckets[Alias]> }
  : never;

export interface KvFacadeInput extends Omit<KvBucketInput, "binding" | "resource"> {
  readonly resources: Readonly<Record<string, KvResource>>;
  /** The bindings of now: a refresh may bring one that was missing, or take one away. */
  bindings(): Readonly<Record<string, KvBinding>>;
}

/**
 * The facade over the declared buckets. Each handle is made when it is first touched, and again when its binding leads
 * elsewhere; a bucket that is not bound has none. What is bound without being declared has no schema, and so no place.
 */
export function kvFacade(input: KvFacadeInput): object {
  const { resources, bindings, ...rest } = input;
  const handles = new Map<string, { bucket: string; handle: KvBucket }>();
  const facade = {};
  for (const [alias, resource] of Object.entries(resources)) {
    Object.defineProperty(facade, alias, {
      enumerable: true,
      get() {
        const bound = bindings();
        const binding = Object.hasOwn(bound, alias) ? bound[alias] : undefined;
        if (binding === undefined) return undefined;
        const known = handles.get(alias);
        if (known?.bucket === binding.bucket) return known.handle;
        const handle = new KvBucket({ ...rest, binding, resource });
        handles.set(alias, { bucket: binding.bucket, handle });
        return handle;
      },
    });
  }
  return facade;
}
