import { compileSchema } from "@trellis/contract";
import type { Static, TSchema } from "typebox";

/** A check of a value against a schema of ours; compiled when it is first asked. */
export function schemaCheck<S extends TSchema & { readonly "~kind": string }>(
  schema: S,
): (value: unknown) => value is Static<S> {
  const compiled = compileSchema(schema);
  return (value): value is Static<S> => compiled.issues(value) === undefined;
}
