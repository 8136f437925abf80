import { AsyncResult } from "@trellis/result";
import type { KvListing } from "./kv.ts";
import type { KvStored } from "./kv-entry.ts";
import { type KvFailure, kvFailure } from "./kv-failure.ts";
import type { KvWatching } from "./kv-watch.ts";

/** A listing over the state that a watch would begin with. It remembers keys, so that each comes once. */
export class KvPages<T> implements KvListing<T> {
  readonly #open: () => KvWatching;
  readonly #pick: (stored: KvStored<unknown>) => T | undefined;

  constructor(open: () => KvWatching, pick: (stored: KvStored<unknown>) => T | undefined) {
    this.#open = open;
    this.#pick = pick;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    const given = new Set<string>();
    for await (const change of this.#open()) {
      if (change.kind === "ready") return;
      const item = this.#pick(change);
      if (item === undefined || given.has(change.key)) continue;
      given.add(change.key);
      yield item;
    }
  }

  collect(): AsyncResult<readonly T[], KvFailure> {
    return AsyncResult.try(
      async () => {
        const all: T[] = [];
        for await (const item of this) all.push(item);
        return all;
      },
      (thrown) => kvFailure(thrown),
    );
  }
}
