import { DefinitionError } from "../errors/definition-error.ts";
import { facadeName } from "../facade-name.ts";

/** A name that wants a place on a facade. */
export interface PlaceClaim {
  /** Dotted name, from which the place follows. */
  readonly name: string;
  /** How a message calls it. */
  readonly owner: string;
}

/** Names that would make a facade behave like something else: a promise, or the prototype chain. */
const FORBIDDEN: ReadonlySet<string> = new Set(["constructor", "prototype", "then"]);

/** Refuses two names that would stand at one place of a facade, and names that would break it. */
export function requireDistinctPlaces(place: string, claims: readonly PlaceClaim[], hint?: string): void {
  const taken = new Map<string, string>();
  for (const { name, owner } of claims) {
    const { group, leaf } = facadeName(name);
    if (FORBIDDEN.has(group) || FORBIDDEN.has(leaf)) {
      throw new DefinitionError({
        place,
        problem: `${JSON.stringify(owner)} would be called ${group}.${leaf}, which JavaScript treats specially`,
        hint: "Choose another name",
      });
    }
    const where = `${group}.${leaf}`;
    const other = taken.get(where);
    if (other !== undefined) {
      throw new DefinitionError({
        place,
        problem: `${JSON.stringify(other)} and ${JSON.stringify(owner)} would both be called ${where}`,
        hint: hint ?? "Rename one of them",
      });
    }
    taken.set(where, owner);
  }
}
