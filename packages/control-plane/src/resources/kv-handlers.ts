import { err, ok, type Result } from "@trellis/result";
import type { KvChange, KvEntry, KvFailure, KvInvalid } from "@trellis/runtime";
import { CursorInvalid, NotKnown, RevisionStale } from "../core/errors.ts";
import { nextCursor, readPage } from "../core/page.ts";
import { ResourceRefused, type ResourcesHandlersOf } from "./api.ts";
import type { Place, ResourceDesk } from "./resource-desk.ts";

type Stale = InstanceType<typeof RevisionStale>;
type Refused = InstanceType<typeof ResourceRefused>;

/** What is in the buckets of deployments. */
export function kvHandlers(desk: ResourceDesk): ResourcesHandlersOf<"Kv"> {
  return {
    "Resources.Kv.Keys": async (input) => {
      const bucket = await desk.bucket(input);
      if (bucket.isErr()) return err(bucket.error);
      const list = `keys ${input.prefix ?? ""}`;
      const page = readPage(list, input);
      if (page.isErr()) return err(new CursorInvalid());
      const { limit, after } = page.value;
      if (after === undefined) await desk.audit("kv.keys", input);
      const listed = await bucket.value.keys(input.prefix ?? "").collect();
      if (listed.isErr()) return err(refusedBy(listed.error));
      const rest = [...listed.value].sort().filter((key) => after === undefined || key > after);
      const keys = rest.slice(0, limit);
      return ok({ keys, ...nextCursor(list, rest.length > limit ? keys.at(-1) : undefined) });
    },

    "Resources.Kv.Get": async (input) => {
      const { key, revision } = input;
      const bucket = await desk.bucket(input);
      if (bucket.isErr()) return err(bucket.error);
      await desk.audit("kv.get", input, key);
      const found = await bucket.value.get(key, revision === undefined ? {} : { revision });
      if (found.isErr()) return unreadable(key, found.error);
      if (found.value === undefined) return err(new NotKnown({ data: { kind: "key", id: key } }));
      return ok({ entry: entryView(found.value) });
    },

    "Resources.Kv.Put": async (input) => {
      const { key, value, revision } = input;
      const bucket = await desk.writable(input);
      if (bucket.isErr()) return err(bucket.error);
      await desk.audit("kv.put", input, key);
      const written = await (revision === undefined
        ? bucket.value.put(key, value)
        : revision === 0
          ? bucket.value.create(key, value)
          : bucket.value.replace(key, value, { revision }));
      return settled(written);
    },

    "Resources.Kv.Delete": async (input) => {
      const { key, revision } = input;
      const bucket = await desk.bucket(input);
      if (bucket.isErr()) return err(bucket.error);
      await desk.audit("kv.delete", input, key);
      return settled(await bucket.value.delete(key, revision === undefined ? {} : { revision }));
    },
  };
}

/** Gives every change of a bucket, until the one who watches has left. */
export async function watchBucket(
  desk: ResourceDesk,
  input: Place & { readonly key?: string; readonly prefix?: string },
  { emit, signal }: { emit(item: WatchItem): Promise<void>; signal: AbortSignal },
): Promise<Result<void, InstanceType<typeof NotKnown> | Refused>> {
  const bucket = await desk.bucket(input);
  if (bucket.isErr()) return err(bucket.error);
  const { key, prefix } = input;
  await desk.audit("kv.watch", input, key ?? prefix);
  const range = key === undefined ? { prefix: prefix ?? "" } : { key };
  try {
    for await (const change of bucket.value.watch({ ...range, signal })) await emit(changeView(change));
    return ok(undefined);
  } catch (error) {
    if (signal.aborted) return ok(undefined);
    return err(refused(error instanceof Error ? error.message : "The watch ended."));
  }
}

export type WatchItem = ReturnType<typeof changeView>;

function changeView(change: KvChange<unknown>) {
  if (change.kind === "ready") return { kind: "ready" as const };
  if (change.kind === "value") return entryView(change);
  if (change.kind === "invalid") return invalidView(change);
  const { key, revision, updatedAt } = change;
  return { kind: "deleted" as const, key, revision, updatedAt: updatedAt.getTime() };
}

function entryView({ key, value, revision, updatedAt, expiresAt }: KvEntry<unknown>) {
  const expiry = expiresAt === undefined ? {} : { expiresAt: expiresAt.getTime() };
  return { kind: "value" as const, key, value, revision, updatedAt: updatedAt.getTime(), ...expiry };
}

function invalidView({ key, revision, updatedAt, error }: KvInvalid) {
  return { kind: "invalid" as const, key, revision, updatedAt: updatedAt.getTime(), problem: error.message };
}

/** A value that cannot be read is no failure of the platform: it is there to be seen, and to be deleted. */
function unreadable(key: string, error: KvFailure) {
  if (error.type !== "KVError" || error.revision === undefined) return err(refusedBy(error));
  const { revision, message: problem } = error;
  return ok({ entry: { kind: "invalid" as const, key, revision, problem } });
}

function settled(
  written: Result<{ revision: number }, KvFailure>,
): Result<{ revision: number }, Stale | Refused> {
  if (written.isOk()) return ok({ revision: written.value.revision });
  const { error } = written;
  if (error.type === "KVError" && (error.reason === "revision_mismatch" || error.reason === "exists"))
    return err(new RevisionStale({ data: { revision: error.revision ?? 0 } }));
  return err(refusedBy(error));
}

function refusedBy(error: KvFailure): Refused {
  return refused(error.message);
}

function refused(problem: string): Refused {
  return new ResourceRefused({ data: { problem } });
}
