import type { AuthorityArtifact } from "./artifact.ts";

type Use = AuthorityArtifact["uses"][number];

/** A deployment as a possible provider of APIs. */
export interface Provider {
  id: string;
  disabled: boolean;
  artifact: Pick<AuthorityArtifact, "implements">;
}

export type UnboundReason = "no_provider" | "provider_disabled" | "ambiguous" | "not_granted";

/** What became of the APIs that a deployment uses. */
export interface ResolvedBindings {
  /** One provider for each used API that has one. */
  bound: readonly { use: Use; provider: string }[];
  /** Used APIs without a provider now; a later refresh may bring one. */
  unbound: readonly { api: string; reason: UnboundReason }[];
  /** Required APIs that several deployments provide while nobody chose: an error, never a guess. */
  ambiguous: readonly { api: string; providers: readonly string[] }[];
}

/**
 * Decides which deployment provides each used API: the one that was chosen, else the only one there is.
 * An optional API that is ambiguous is left unbound.
 */
export function resolveBindings(input: {
  uses: readonly Use[];
  providers: readonly Provider[];
  /** API id to the deployment that an administrator chose. */
  chosen: ReadonlyMap<string, string>;
  /** API id to the provider that a running connection has: a second provider does not take it away. */
  current?: ReadonlyMap<string, string>;
}): ResolvedBindings {
  const bound: { use: Use; provider: string }[] = [];
  const unbound: { api: string; reason: UnboundReason }[] = [];
  const ambiguous: { api: string; providers: readonly string[] }[] = [];
  for (const use of input.uses) {
    const { api } = use;
    const all = input.providers.filter((provider) =>
      provider.artifact.implements.some((own) => own.id === api),
    );
    const choice = input.chosen.get(api);
    const named = choice === undefined ? all : all.filter((provider) => provider.id === choice);
    const enabled = named.filter((provider) => !provider.disabled);
    const kept = enabled.find((provider) => provider.id === input.current?.get(api));
    const [only, ...others] = kept === undefined ? enabled : [kept];
    if (only === undefined) {
      unbound.push({ api, reason: named.length > 0 ? "provider_disabled" : "no_provider" });
    } else if (others.length === 0) {
      bound.push({ use, provider: only.id });
    } else if (use.optional === true) {
      unbound.push({ api, reason: "ambiguous" });
    } else {
      ambiguous.push({ api, providers: [only, ...others].map((provider) => provider.id).sort() });
    }
  }
  return { bound, unbound, ambiguous };
}
