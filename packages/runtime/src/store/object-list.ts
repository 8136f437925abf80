import {
  decodeListCursor,
  decodeStoreKey,
  encodeListCursor,
  StoreError,
  storeMetaPrefix,
} from "@trellis/protocol";
import type { RequestLink } from "../jetstream/broker-requests.ts";
import { StreamFollower } from "../jetstream/stream-follower.ts";
import type { StreamReader } from "../jetstream/stream-reader.ts";
import { infoOf, type ObjectMetas } from "./object-metas.ts";
import type { StoreInfo, StorePage } from "./store.ts";

export interface ListInput {
  readonly link: RequestLink;
  readonly reader: StreamReader;
  readonly metas: ObjectMetas;
  readonly name: string;
  readonly prefix: string;
  readonly cursor: string | undefined;
  readonly limit: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * One page of a store's objects. The stream knows no order by key: all descriptions are read, and of them no more are
 * kept than the page needs.
 */
export async function listObjects(input: ListInput): Promise<StorePage> {
  const { prefix, limit } = input;
  const after = afterKey(input);
  const page = new SmallestKeys(limit + 1);
  const mark = `${storeMetaPrefix(input.name)}.`;
  const follower = new StreamFollower({
    link: input.link,
    reader: input.reader,
    filter: `${mark}>`,
    live: undefined,
    contiguous: false,
    ages: true,
    signal: input.signal,
  });
  for (;;) {
    const followed = await follower.next();
    if (followed.kind === "failed") throw followed.error;
    if (followed.kind === "end" || followed.kind === "replaced") break;
    if (followed.kind === "ready") continue;
    const key = decodeStoreKey(followed.record.subject.slice(mark.length));
    if (key === undefined || !key.startsWith(prefix) || (after !== undefined && key <= after)) continue;
    const found = input.metas.read(key, followed.record);
    if (found.kind === "object") page.set(key, infoOf(found.meta, found.record.storedAt));
    else page.set(key, found.kind === "unreadable" ? "unreadable" : undefined);
  }
  const { entries, more } = page.take(limit);
  const last = entries.at(-1);
  return {
    items: entries.flatMap(([, info]) => (info === "unreadable" ? [] : [info])),
    unreadable: entries.flatMap(([key, info]) => (info === "unreadable" ? [key] : [])),
    cursor: more && last !== undefined ? encodeListCursor({ prefix, key: last[0] }) : undefined,
  };
}

function afterKey({ cursor, prefix }: ListInput): string | undefined {
  if (cursor === undefined) return undefined;
  const key = decodeListCursor(cursor, prefix);
  if (key === undefined) throw new StoreError({ reason: "invalid_cursor" });
  return key;
}

type Listed = StoreInfo | "unreadable";

/** Of many keys the smallest ones, with what is known of each. */
class SmallestKeys {
  readonly #most: number;
  readonly #entries = new Map<string, Listed>();
  /** Keys from here on were let go. */
  #bound: string | undefined;

  constructor(most: number) {
    this.#most = most;
  }

  /** The newest word on a key counts; `undefined` says that it is gone. */
  set(key: string, listed: Listed | undefined): void {
    if (listed === undefined) this.#entries.delete(key);
    else if (this.#bound === undefined || key < this.#bound) this.#entries.set(key, listed);
    if (this.#entries.size >= 2 * this.#most) this.#shrink();
  }

  take(limit: number): { readonly entries: readonly [string, Listed][]; readonly more: boolean } {
    const sorted = this.#sorted();
    return { entries: sorted.slice(0, limit), more: sorted.length > limit || this.#bound !== undefined };
  }

  #shrink(): void {
    for (const [key] of this.#sorted().slice(this.#most)) {
      this.#entries.delete(key);
      if (this.#bound === undefined || key < this.#bound) this.#bound = key;
    }
  }

  #sorted(): [string, Listed][] {
    return [...this.#entries].sort(([a], [b]) => (a < b ? -1 : 1));
  }
}
