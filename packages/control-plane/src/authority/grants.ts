import { canonicalJson, digestOf } from "@trellis/contract";
import type { Grants } from "@trellis/protocol";
import type { ResolvedBindings } from "./binding.ts";

/** The grants that a participant's bindings give: what its contract says it uses, at the bound provider. */
export function grantsOf(bindings: ResolvedBindings): Grants {
  const calls = bindings.bound.map(({ use, provider }) => ({
    api: use.api,
    deployment: provider,
    rpc: names(use.rpc),
    feeds: names(use.feeds),
    operations: names(use.operations),
    publishes: [],
    consumes: names(use.events),
  }));
  calls.sort((left, right) => (left.api < right.api ? -1 : 1));
  return { version: 1, calls, capabilities: [] };
}

/** The text and the digest under which grants are kept and published. */
export function sealGrants(grants: Grants): { digest: string; body: string } {
  return { digest: digestOf(grants), body: canonicalJson(grants) };
}

function names(actions: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(actions).sort();
}
