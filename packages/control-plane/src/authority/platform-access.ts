import { listenApi } from "@trellis/runtime/node";
import type { AuthorityArtifact } from "./artifact.ts";

type Use = AuthorityArtifact["uses"][number];

/** Ids of the platform's own participants and APIs begin so; nobody else can install one. */
export const PLATFORM_NAMESPACE = "trellis.";

/** True for what is the platform's own: its service, and the participant of its command line. */
export function isPlatformOwned(id: string): boolean {
  return id.startsWith(PLATFORM_NAMESPACE);
}

/** What is left of a contract's uses when the platform's own APIs are given only to whom they were granted. */
export interface GrantedUses {
  uses: readonly Use[];
  /** Platform APIs of which nothing was granted. */
  refused: readonly { api: string; reason: "not_granted" }[];
}

/**
 * A contract that uses an ordinary API is allowed to by being installed. The platform's own APIs can take
 * everything over, so using them takes a grant beside it; a use is narrowed to what was granted (`*`: all).
 */
export function grantedUses(uses: readonly Use[], granted: readonly string[]): GrantedUses {
  const all = granted.includes("*");
  const names = new Set(granted);
  const kept: Use[] = [];
  const refused: { api: string; reason: "not_granted" }[] = [];
  for (const use of uses) {
    if (!isPlatformOwned(use.api) || all) {
      kept.push(use);
      continue;
    }
    const rpc = Object.fromEntries(Object.entries(use.rpc).filter(([name]) => names.has(name)));
    if (Object.keys(rpc).length === 0) refused.push({ api: use.api, reason: "not_granted" });
    else kept.push({ ...use, rpc, events: {}, feeds: {}, operations: {} });
  }
  return { uses: kept, refused };
}

/** True when a contract can listen to events: its own, or those that it uses. */
export function listensTo({
  implements: own,
  uses,
}: Pick<AuthorityArtifact, "implements" | "uses">): boolean {
  return [...own, ...uses].some(({ events }) => Object.keys(events).length > 0);
}

/**
 * What every participant uses of the platform without naming it: asking for its own ephemeral listeners. It takes no
 * grant, since the platform makes them only of events that the caller's own grants name.
 */
export function withListening(artifact: AuthorityArtifact, uses: readonly Use[]): readonly Use[] {
  const named = uses.find(({ api }) => api === listenApi.id);
  if (!listensTo(artifact) || isPlatformOwned(artifact.id)) return uses;
  const action = listenApi.artifact.rpc["Events.Listen"] as Use["rpc"][string];
  const wanted: Use = named ?? {
    api: listenApi.id,
    optional: true,
    rpc: {},
    events: {},
    feeds: {},
    operations: {},
  };
  const added = { ...wanted, rpc: { ...wanted.rpc, "Events.Listen": action } };
  return [...uses.filter((use) => use !== named), added];
}
