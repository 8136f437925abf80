import type { KvResource } from "@trellis/contract";
import {
  decodeJsonBytes,
  encodeJson,
  KVError,
  kvEntryKind,
  type Port,
  ValidationError,
} from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import type { StoredRecord } from "../jetstream/stored-record.ts";
import type { KvStored } from "./kv-entry.ts";

/** What the values of a bucket are: by the contract, and by its binding. */
export type KvRules = Pick<KvResource, "value" | "version" | "migrate"> & {
  readonly maxValueBytes: number | undefined;
  readonly ttlMs: number | undefined;
  /** No value is migrated, and none is of a version that is not known. */
  readonly asStored?: boolean;
  /** What holds them, as people read it. Default "bucket". */
  readonly holder?: string;
};

type Read = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: KVError };

const encoder = new TextEncoder();

/**
 * Between values and what is stored. A value that does not fit is refused on write, and on read it is an entry of its
 * own kind: never absent, never changed, and no reason to fail for others.
 */
export class KvValues {
  readonly #port: Port;
  readonly #rules: KvRules;

  constructor(port: Port, rules: KvRules) {
    this.#port = port;
    this.#rules = rules;
  }

  /** Version of the representation that is written. */
  get version(): number {
    return this.#rules.version;
  }

  get #holder(): string {
    return this.#rules.holder ?? "bucket";
  }

  encode(value: unknown): Result<Uint8Array, ValidationError> {
    const issues = this.#rules.value.issues(value);
    if (issues !== undefined) return err(new ValidationError({ errors: issues }));
    // A schema of anything lets it through, and its text is empty: what was stored could not be read again.
    if (value === undefined)
      return err(
        new ValidationError({ errors: [{ path: "", message: "must be a value; undefined is none" }] }),
      );
    const encoded = encodeJson(value);
    if (!encoded.ok) return err(new ValidationError({ errors: encoded.issues }));
    const bytes = encoder.encode(encoded.text);
    const { maxValueBytes } = this.#rules;
    if (maxValueBytes === undefined || bytes.length <= maxValueBytes) return ok(bytes);
    const message = `is too large: ${bytes.length} bytes, the ${this.#holder} takes ${maxValueBytes}`;
    return err(new ValidationError({ errors: [{ path: "", message }], message: `The value ${message}` }));
  }

  /** What a stored message says of a key. Never throws. */
  decode(key: string, record: StoredRecord): KvStored<unknown> {
    const updatedAt = record.storedAt;
    const common = { key, revision: record.sequence, updatedAt };
    const kind = kvEntryKind(record);
    if (kind.kind === "deleted") return { kind: "deleted", ...common };
    const read =
      kind.kind === "value"
        ? this.read(record.data, kind.version)
        : { ok: false as const, error: invalid(`The stored message ${kind.problem}`) };
    if (read.ok)
      return { kind: "value", ...common, value: read.value, expiresAt: this.#expiry(record, updatedAt) };
    const { message, reason, details, cause } = read.error;
    const about = { key, revision: record.sequence, ...(details !== undefined && { details }) };
    return { kind: "invalid", ...common, error: new KVError({ message, reason, cause, ...about }) };
  }

  /** The value of bytes that were written in a version of the representation. Never throws. */
  read(data: Uint8Array, version: number): Read {
    if (data.length === 0) return { ok: false, error: invalid("The stored value is empty") };
    const parsed = decodeJsonBytes(this.#port, data);
    if (!parsed.ok) return misfit(this.#holder, parsed.issues);
    try {
      const current = this.#migrated(parsed.value, version);
      if (!current.ok) return current;
      const decoded = this.#rules.value.decode(current.value);
      return decoded.ok ? decoded : misfit(this.#holder, decoded.issues);
    } catch (cause) {
      return {
        ok: false,
        error: new KVError({ reason: "invalid_value", message: "The stored value cannot be read", cause }),
      };
    }
  }

  #migrated(value: unknown, version: number): Read {
    const { version: newest, migrate, asStored = false } = this.#rules;
    if (asStored || version === newest) return { ok: true, value };
    const step = Object.hasOwn(migrate, version) ? migrate[version] : undefined;
    if (step !== undefined) return { ok: true, value: step(value) };
    const how = version > newest ? "is newer than" : "has no way to";
    const message = `Version ${version} of the representation ${how} version ${newest}, which this participant reads`;
    return { ok: false, error: new KVError({ reason: "unknown_version", message, details: { version } }) };
  }

  #expiry(record: StoredRecord, updatedAt: Date): Date | undefined {
    const own = ttlOf(record.get("Nats-TTL"));
    const ttlMs = Math.min(own ?? Number.POSITIVE_INFINITY, this.#rules.ttlMs ?? Number.POSITIVE_INFINITY);
    return Number.isFinite(ttlMs) ? new Date(updatedAt.getTime() + ttlMs) : undefined;
  }
}

/** We write whole seconds; what other tools write may be anything, and is then not told. */
function ttlOf(header: string | undefined): number | undefined {
  const seconds = header === undefined ? undefined : /^(\d{1,9})s?$/.exec(header)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}

function invalid(message: string): KVError {
  return new KVError({ reason: "invalid_value", message });
}

function misfit(
  holder: string,
  issues: readonly { readonly path: string; readonly message: string }[],
): Read {
  const [first] = issues;
  const where = first === undefined ? "" : `: ${first.path === "" ? "it" : first.path} ${first.message}`;
  const errors = issues.slice(0, 20).map(({ path, message }) => ({ path, message }));
  const message = `The stored value does not fit the ${holder}'s schema${where}`;
  return { ok: false, error: new KVError({ reason: "invalid_value", message, details: { errors } }) };
}
