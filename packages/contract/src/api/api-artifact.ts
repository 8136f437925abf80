import type { JsonObject } from "@trellis/result";
import type { EventAction } from "../actions/event.ts";
import type { FeedAction } from "../actions/feed.ts";
import type { OperationAction } from "../actions/operation.ts";
import type { RpcAction } from "../actions/rpc.ts";
import type { AnyDeclaredErrorClass } from "../errors/declared-error.ts";
import { stripAnnotations } from "../schema/annotations.ts";
import type { CompiledSchema } from "../schema/compiled-schema.ts";
import { requireJsonSchema } from "../schema/require-json-schema.ts";
import { requirePointer } from "../schema/require-pointer.ts";
import { escapePointer } from "../schema/walk.ts";

/** A JSON Schema in an artifact: annotations stripped. `null`: nothing is sent. */
export type ArtifactSchema = JsonObject | null;

/** Declared errors in an artifact: name to schema of the data. */
export type ArtifactErrors = Readonly<Record<string, ArtifactSchema>>;

/** An RPC in an artifact. */
export interface RpcArtifact {
  readonly input: ArtifactSchema;
  readonly output: ArtifactSchema;
  readonly errors: ArtifactErrors;
  readonly idempotent: boolean | { readonly key: string };
  readonly coalesce: boolean;
  readonly download: boolean;
}

/** An event in an artifact. */
export interface EventArtifact {
  readonly payload: JsonObject;
  readonly params: readonly string[];
}

/** An operation in an artifact. */
export interface OperationArtifact {
  readonly input: ArtifactSchema;
  readonly output: ArtifactSchema;
  readonly progress: ArtifactSchema;
  readonly update: ArtifactSchema;
  readonly signals: Readonly<Record<string, JsonObject>>;
  readonly errors: ArtifactErrors;
  readonly cancel: boolean;
  readonly upload: { readonly store: string | null; readonly maxBytes: number | null } | null;
}

/** A feed in an artifact. */
export interface FeedArtifact {
  readonly input: ArtifactSchema;
  readonly event: JsonObject;
  readonly errors: ArtifactErrors;
}

/** An API as JSON: what is digested, installed and compared. */
export interface ApiArtifact {
  readonly format: "trellis.api/v1";
  readonly id: string;
  readonly rpc: Readonly<Record<string, RpcArtifact>>;
  readonly events: Readonly<Record<string, EventArtifact>>;
  readonly operations: Readonly<Record<string, OperationArtifact>>;
  readonly feeds: Readonly<Record<string, FeedArtifact>>;
}

const stripped = new WeakMap<CompiledSchema, JsonObject>();

/** The artifact form of a schema. Refuses what no contract can hold. */
export function artifactSchema(schema: CompiledSchema): JsonObject {
  let json = stripped.get(schema);
  if (json === undefined) {
    requireJsonSchema(schema.json);
    json = stripAnnotations(schema.json);
    stripped.set(schema, json);
  }
  return json;
}

function maybe(schema: CompiledSchema | undefined): ArtifactSchema {
  return schema === undefined ? null : artifactSchema(schema);
}

function errorsArtifact(errors: Readonly<Record<string, AnyDeclaredErrorClass>>): ArtifactErrors {
  return mapRecord(errors, (error) => maybe(error.dataSchema));
}

export function rpcArtifact(action: RpcAction): RpcArtifact {
  if (typeof action.idempotent === "object")
    requirePointer("idempotent key", action.idempotent.key, action.input);
  return {
    input: maybe(action.input),
    output: maybe(action.output),
    errors: errorsArtifact(action.errors),
    idempotent: action.idempotent,
    coalesce: action.coalesce,
    download: action.download,
  };
}

export function eventArtifact(action: EventAction): EventArtifact {
  for (const param of action.params) requirePointer("params", `/${escapePointer(param)}`, action.payload);
  return { payload: artifactSchema(action.payload), params: action.params };
}

export function operationArtifact(action: OperationAction): OperationArtifact {
  const { upload } = action;
  return {
    input: maybe(action.input),
    output: maybe(action.output),
    progress: maybe(action.progress),
    update: maybe(action.update),
    signals: mapRecord(action.signals, artifactSchema),
    errors: errorsArtifact(action.errors),
    cancel: action.cancel,
    upload: upload === false ? null : { store: upload.store ?? null, maxBytes: upload.maxBytes ?? null },
  };
}

export function feedArtifact(action: FeedAction): FeedArtifact {
  return {
    input: maybe(action.input),
    event: artifactSchema(action.event),
    errors: errorsArtifact(action.errors),
  };
}

/** The same keys, other values. */
export function mapRecord<V, W>(
  record: Readonly<Record<string, V>>,
  change: (value: V, key: string) => W,
): Record<string, W> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
}
