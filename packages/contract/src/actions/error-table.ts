import type { AnyDeclaredErrorClass } from "../errors/declared-error.ts";
import { DefinitionError } from "../errors/definition-error.ts";

/** Declared errors by name; refuses two of one name. */
export function errorTable<E extends AnyDeclaredErrorClass>(
  place: string,
  classes: readonly E[],
): Readonly<Record<string, E>> {
  const table: Record<string, E> = {};
  for (const errorClass of classes) {
    if (Object.hasOwn(table, errorClass.errorName)) {
      throw new DefinitionError({
        place,
        problem: `the error ${JSON.stringify(errorClass.errorName)} is listed twice`,
        hint: "List each error once; two different errors need two names",
      });
    }
    table[errorClass.errorName] = errorClass;
  }
  return table;
}
