import { canonicalJson, digestOf } from "@trellis/contract";
import type { Grants } from "@trellis/protocol";
import type { AuthorityArtifact } from "./artifact.ts";
import type { ResolvedBindings } from "./binding.ts";

/**
 * The grants of a deployment: what its contract says it uses, at the bound provider, and the events of its own APIs,
 * which it publishes in its own name.
 */
export function grantsOf(input: {
  deployment: string;
  artifact: Pick<AuthorityArtifact, "implements">;
  bindings: ResolvedBindings;
}): Grants {
  const { deployment, artifact, bindings } = input;
  const calls: Grants["calls"] = bindings.bound.map(({ use, provider }) => ({
    api: use.api,
    deployment: provider,
    rpc: names(use.rpc),
    feeds: names(use.feeds),
    operations: names(use.operations),
    publishes: [],
    consumes: names(use.events),
  }));
  for (const { id, events } of artifact.implements) {
    const publishes = names(events);
    if (publishes.length === 0) continue;
    calls.push({ api: id, deployment, rpc: [], feeds: [], operations: [], publishes, consumes: publishes });
  }
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
