import { stateApi } from "@trellis/runtime/node";
import type { AuthorityArtifact } from "../authority/artifact.ts";

type Use = AuthorityArtifact["uses"][number];
type Declared = Pick<AuthorityArtifact, "state">;

const rpc = Object.fromEntries(Object.keys(stateApi.rpc).map((name) => [name, {}]));

/**
 * What a contract uses without naming it: who declares state may call the API of state, which gives everybody their own
 * and nothing else. It needs no grant.
 */
export function impliedUses({ state }: Declared): readonly Use[] {
  if (Object.keys(state).length === 0) return [];
  return [{ api: stateApi.id, rpc, events: {}, feeds: {}, operations: {} }];
}

/** Whether a use that a contract names is implied anyway. */
export function isImplied({ api }: Use, artifact: Declared): boolean {
  return impliedUses(artifact).some((implied) => implied.api === api);
}
