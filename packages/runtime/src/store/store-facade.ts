import type { AnyParticipant, StoreResource } from "@trellis/contract";
import type { StoreBinding } from "@trellis/protocol";
import type { AsyncResult } from "@trellis/result";
import { type StoreInput, StreamObjectStore } from "./object-store.ts";
import type { ObjectStore, StoreHandle, StoreOptions } from "./store.ts";
import type { StoreFailure } from "./store-failure.ts";

/** The handle of one store; an optional one may be `undefined`. */
type Handle<R> =
  R extends StoreResource<infer Optional> ? StoreHandle | (Optional extends true ? undefined : never) : never;

/** `service.store`: the object stores of a participant, by alias. */
export type StoreFacade<P extends AnyParticipant> = P["store"] extends infer Stores
  ? { readonly [Alias in keyof Stores]: Handle<Stores[Alias]> }
  : never;

export interface StoreFacadeInput extends Omit<StoreInput, "binding"> {
  readonly resources: Readonly<Record<string, StoreResource>>;
  /** The bindings of now: a refresh may bring one that was missing, or take one away. */
  bindings(): Readonly<Record<string, StoreBinding>>;
}

/** The facade over the declared stores; see `kvFacade`. */
export function storeFacade(input: StoreFacadeInput): object {
  const { resources, bindings, ...rest } = input;
  const handles = new Map<string, { name: string; handle: StoreHandle }>();
  const facade = {};
  for (const alias of Object.keys(resources)) {
    Object.defineProperty(facade, alias, {
      enumerable: true,
      get() {
        const bound = bindings();
        const binding = Object.hasOwn(bound, alias) ? bound[alias] : undefined;
        if (binding === undefined) return undefined;
        const known = handles.get(alias);
        if (known?.name === binding.name) return known.handle;
        const handle = new OpeningStore(new StreamObjectStore({ ...rest, binding }));
        handles.set(alias, { name: binding.name, handle });
        return handle;
      },
    });
  }
  return facade;
}

class OpeningStore implements StoreHandle {
  readonly #store: StreamObjectStore;

  constructor(store: StreamObjectStore) {
    this.#store = store;
  }

  open(options: StoreOptions = {}): AsyncResult<ObjectStore, StoreFailure> {
    return this.#store.probe(options).map((): ObjectStore => this.#store);
  }
}
