// A value is stored as its JSON text alone, so that any NATS tool reads and writes it. What else there is to say
// stands in headers, and only where it is not the usual.

/** Header of the representation's version. Left out for version 1. */
export const KV_VERSION_HEADER = "Trellis-Version";

/** Header that names one conditional write, so that a writer who lost the answer finds his own. */
export const KV_WRITE_HEADER = "Trellis-Write";

/** Header of what is no value: {@link KV_DELETED}, or `PURGE` of other tools and of the broker. */
export const KV_OPERATION_HEADER = "KV-Operation";

/** What {@link KV_OPERATION_HEADER} says of a deleted key. */
export const KV_DELETED = "DEL";

/** Header of the broker's own markers, for keys whose value has expired. */
export const KV_MARKER_HEADER = "Nats-Marker-Reason";

/** The headers that say what an entry is, by their lower-case or given names. */
export interface KvEntryHeaders {
  get(name: string): string | undefined;
}

export type KvEntryKind =
  | { readonly kind: "value"; readonly version: number }
  | { readonly kind: "deleted" }
  | { readonly kind: "unreadable"; readonly problem: string };

const VERSION = /^[1-9][0-9]{0,8}$/;

/** What a stored message is, by its headers. */
export function kvEntryKind(headers: KvEntryHeaders): KvEntryKind {
  const operation = headers.get(KV_OPERATION_HEADER);
  if (operation === KV_DELETED || operation === "PURGE") return { kind: "deleted" };
  if (headers.get(KV_MARKER_HEADER) !== undefined) return { kind: "deleted" };
  if (operation !== undefined && operation !== "" && operation !== "PUT")
    return { kind: "unreadable", problem: "is marked by an operation that is not known" };
  const version = headers.get(KV_VERSION_HEADER);
  if (version === undefined) return { kind: "value", version: 1 };
  if (!VERSION.test(version)) return { kind: "unreadable", problem: "names no version of a representation" };
  return { kind: "value", version: Number(version) };
}
