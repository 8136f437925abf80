import type { AnyParticipant } from "@trellis/contract";
import { type ResourceBindings, TransportError } from "@trellis/protocol";

const kinds = ["kv", "store", "consumers"] as const;

/** Names what a participant declares as required and the platform did not bind; `undefined` when all is there. */
export function missingBinding(
  participant: AnyParticipant,
  resources: Pick<ResourceBindings, (typeof kinds)[number]>,
): TransportError | undefined {
  for (const kind of kinds) {
    for (const [alias, { optional }] of Object.entries(participant[kind])) {
      if (optional || Object.hasOwn(resources[kind], alias)) continue;
      return new TransportError({
        code: "trellis.bootstrap.binding_missing",
        message: `The contract needs ${kind} "${alias}", and the platform has not bound it.`,
        hint: "Install the newest contract and update the deployment, or declare it `optional`.",
      });
    }
  }
  return undefined;
}
