import { DefinitionError } from "../errors/definition-error.ts";
import type { Participant } from "./participant.ts";

/** Refuses a participant that speaks of what it does not have: a consumer's event, an upload's store. */
export function requireReferences(place: string, participant: Participant): void {
  for (const [alias, consumer] of Object.entries(participant.consumers)) {
    for (const { api, name } of consumer.events) {
      if (hasEvent(participant, api, name)) continue;
      throw new DefinitionError({
        place: `${place}, consumer ${JSON.stringify(alias)}`,
        problem: `it consumes ${name} of ${api}, which the participant neither uses nor implements`,
        hint: `Add it to uses: use(api, { events: [${JSON.stringify(name)}] })`,
      });
    }
  }
  const stores = Object.keys(participant.store);
  for (const api of participant.implements) {
    for (const { name, upload } of Object.values(api.operations)) {
      if (upload === false) continue;
      requireStore(`${place}, operation ${JSON.stringify(name)} upload`, upload.store, stores);
    }
  }
}

function hasEvent(participant: Participant, api: string, name: string): boolean {
  return (
    participant.implements.some((owned) => owned.id === api && Object.hasOwn(owned.events, name)) ||
    participant.uses.some(
      (used) => used.api.id === api && Object.values(used.events).some((e) => e.name === name),
    )
  );
}

function requireStore(place: string, alias: string | undefined, stores: readonly string[]): void {
  if (alias === undefined && stores.length === 1) return;
  if (alias !== undefined && stores.includes(alias)) return;
  const declared = stores.length === 0 ? "none" : stores.join(", ");
  throw new DefinitionError({
    place,
    problem:
      alias === undefined
        ? `it does not say which store (declared: ${declared})`
        : `there is no store ${JSON.stringify(alias)} (declared: ${declared})`,
    hint:
      stores.length === 0 ? "Declare one: store: { uploads: store() }" : "Name one: upload: { store: alias }",
  });
}
