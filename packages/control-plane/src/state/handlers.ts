import { decodeJson } from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import {
  MAX_STATE_BYTES,
  StateConflict,
  StateNotDeclared,
  StateRefused,
  type stateApi,
} from "@trellis/runtime/node";
import type { AuthorityArtifact } from "../authority/artifact.ts";
import type { HandlerOf } from "../core/api.ts";
import type { Plane } from "../plane.ts";
import { findState, type StateKey, type StateRow, saveState } from "../storage/state.ts";

type Actions = (typeof stateApi)["rpc"];

/** The actions of the state API as plain functions of their input, on behalf of one caller. */
export type StateHandlers = { readonly [Name in keyof Actions]: HandlerOf<Actions[Name]> };

export interface StateDeps {
  readonly plane: Pick<Plane, "storage" | "catalog"> & { readonly config: Pick<Plane["config"], "clock"> };
  /** What the platform signed about the caller: it decides whose state is meant. */
  readonly caller: {
    readonly principal: { readonly kind: string; readonly id: string };
    readonly participant: { readonly id: string; readonly digest: string };
  };
}

/** A write as it is to be stored; no value deletes. */
interface Write {
  readonly alias: string;
  readonly value: string | null;
  readonly version: number;
  readonly write: string;
  readonly expected?: number;
}

type Declared = AuthorityArtifact["state"][string];
type Refused = InstanceType<typeof StateNotDeclared>;
type Conflict = InstanceType<typeof StateConflict>;

/**
 * State of principals. Kept in SQL, beside the authority that it belongs to: it is small, seldom written, survives the
 * loss of the broker's data, and goes with a backup of the database.
 */
export function stateHandlers(deps: StateDeps): StateHandlers {
  const { storage, config } = deps.plane;
  return {
    "State.Get": async ({ alias }) => {
      const declared = await declaredState(deps, alias);
      if (declared.isErr()) return err(declared.error);
      const row = await findState(storage.queries, keyOf(deps, alias));
      if (row === undefined || !isLive(row, config.clock.now())) return ok({});
      const { value, version, revision, updatedAt, expiresAt } = row;
      const expiry = expiresAt === null ? {} : { expiresAt };
      return ok({ entry: { value: value ?? "", version, revision, updatedAt, ...expiry } });
    },
    "State.Put": async (input) => {
      const problem = problemOf(input.value);
      if (problem !== undefined) return err(new StateRefused({ data: { problem } }));
      return store(deps, input);
    },
    "State.Delete": (input) => store(deps, { ...input, value: null, version: 1 }),
  };
}

function problemOf(value: string): string | undefined {
  const bytes = Buffer.byteLength(value);
  if (bytes > MAX_STATE_BYTES) return `is too large: ${bytes} bytes, state takes ${MAX_STATE_BYTES}`;
  if (value === "") return "is empty";
  const json = decodeJson(value);
  return json.ok ? undefined : (json.issues[0]?.message ?? "is not JSON");
}

async function store(
  deps: StateDeps,
  write: Write,
): Promise<Result<{ revision: number }, Refused | Conflict>> {
  const { storage, config } = deps.plane;
  const declared = await declaredState(deps, write.alias);
  if (declared.isErr()) return err(declared.error);
  const key = keyOf(deps, write.alias);
  for (;;) {
    const now = config.clock.now();
    const found = await findState(storage.queries, key);
    // The same write again, whose answer was lost.
    if (found?.write === write.write) return ok({ revision: found.revision });
    const current = found !== undefined && isLive(found, now) ? found.revision : 0;
    if (write.expected !== undefined && write.expected !== current)
      return err(new StateConflict({ data: { revision: current } }));
    const revision = (found?.revision ?? 0) + 1;
    const { ttlMs } = declared.value;
    const expiresAt = ttlMs === null || write.value === null ? null : now + ttlMs;
    const { value, version, write: id } = write;
    const row: StateRow = { ...key, value, version, revision, write: id, updatedAt: now, expiresAt };
    if (await saveState(storage.queries, row)) return ok({ revision });
    // Somebody was in between: it is decided anew.
  }
}

function isLive({ value, expiresAt }: StateRow, now: number): boolean {
  return value !== null && (expiresAt === null || expiresAt > now);
}

/** Each caller has its own: there is no way to name another. */
function keyOf({ caller }: StateDeps, alias: string): StateKey {
  const { principal, participant } = caller;
  return { principal: `${principal.kind} ${principal.id}`, participantId: participant.id, alias };
}

/** What the caller's own revision declares; it was installed, or the caller would not be here. */
async function declaredState(
  { plane, caller }: StateDeps,
  alias: string,
): Promise<Result<Declared, Refused>> {
  const { id, digest } = caller.participant;
  const artifact = await plane.catalog.artifact(plane.storage.queries, id, digest);
  const state = artifact?.state ?? {};
  const declared = Object.hasOwn(state, alias) ? state[alias] : undefined;
  return declared === undefined ? err(new StateNotDeclared({ data: { alias } })) : ok(declared);
}
