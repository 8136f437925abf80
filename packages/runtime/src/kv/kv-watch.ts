import { KVError } from "@trellis/protocol";
import type { StoredRecord } from "../jetstream/stored-record.ts";
import type { Followed, StreamFollower } from "../jetstream/stream-follower.ts";
import type { KvWatch } from "./kv.ts";
import type { KvChange, KvStored } from "./kv-entry.ts";
import { kvFailure } from "./kv-failure.ts";
import type { KvInitial } from "./kv-initial.ts";

/** How a watch sees messages of the stream. */
export interface KvView {
  /** What a message says; `undefined` for a key that is not asked for. */
  read(record: StoredRecord): KvStored<unknown> | undefined;
  readonly initial: KvInitial;
}

/** A watch on a bucket: a follower of its stream, decoded when it is read. */
export class KvWatching implements KvWatch<unknown>, AsyncIterator<KvChange<unknown>, undefined> {
  readonly #follower: StreamFollower;
  readonly #view: KvView;
  #prepared = false;
  #ready = false;
  #over = false;
  /** Calls of `next` go one after the other, also when they are made at once. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(follower: StreamFollower, view: KvView) {
    this.#follower = follower;
    this.#view = view;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<KvChange<unknown>, undefined>> {
    const next = this.#turn.then(() => this.#next());
    this.#turn = next.catch(() => {});
    return next;
  }

  async return(): Promise<IteratorResult<KvChange<unknown>, undefined>> {
    this.stop();
    return { done: true, value: undefined };
  }

  stop(): void {
    this.#over = true;
    this.#follower.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
  }

  async #next(): Promise<IteratorResult<KvChange<unknown>, undefined>> {
    if (this.#over) return { done: true, value: undefined };
    try {
      if (!this.#prepared) {
        this.#prepared = true;
        await this.#view.initial.prepare();
      }
      for (;;) {
        const followed = await this.#follower.next();
        if (followed.kind === "end" || this.#over) break;
        const change = this.#change(followed);
        if (change !== undefined) return { done: false, value: change };
      }
    } catch (thrown) {
      this.stop();
      throw kvFailure(thrown);
    }
    this.stop();
    return { done: true, value: undefined };
  }

  #change(followed: Followed): KvChange<unknown> | undefined {
    switch (followed.kind) {
      case "failed":
        throw followed.error;
      case "replaced":
        throw new KVError({ reason: "bucket_replaced" });
      case "ready":
        this.#ready = true;
        this.#view.initial.done();
        return { kind: "ready" };
      case "record": {
        const stored = this.#view.read(followed.record);
        if (stored === undefined || this.#ready) return stored;
        return this.#view.initial.wants(followed.record, stored.kind === "deleted") ? stored : undefined;
      }
      case "end":
        return undefined;
    }
  }
}
