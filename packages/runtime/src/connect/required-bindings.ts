import type { AnyParticipant } from "@trellis/contract";
import { type ResourceBindings, TransportError } from "@trellis/protocol";

const kinds = ["kv", "store", "consumers"] as const;

/** Names what a participant declares as required and the platform did not bind; `undefined` when all is there. */
export function missingBinding(
  participant: AnyParticipant,
  resources: Pick<ResourceBindings, (typeof kinds)[number] | "jobs">,
): TransportError | undefined {
  for (const kind of kinds) {
    for (const [alias, { optional }] of Object.entries(participant[kind])) {
      if (!optional && !Object.hasOwn(resources[kind], alias)) return missing(kind, alias);
    }
  }
  for (const [alias, { optional }] of Object.entries(participant.jobs)) {
    if (!optional && !Object.hasOwn(resources.jobs?.queues ?? {}, alias)) return missing("jobs", alias);
  }
  return undefined;
}

function missing(kind: string, alias: string): TransportError {
  return new TransportError({
    code: "trellis.bootstrap.binding_missing",
    message: `The contract needs ${kind} "${alias}", and the platform has not bound it.`,
    hint: "Install the newest contract and update the deployment, or declare it `optional`.",
  });
}
