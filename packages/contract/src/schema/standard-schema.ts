/**
 * The Standard Schema interface, version 1 (https://standardschema.dev), declared here because copying it is what
 * its specification asks for: no dependency, and any library that speaks it fits.
 */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly "~standard": StandardProps<Input, Output>;
}

/** What a Standard Schema holds under `~standard`. */
export interface StandardProps<Input = unknown, Output = Input> {
  readonly version: 1;
  readonly vendor: string;
  readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
  readonly types?: { readonly input: Input; readonly output: Output } | undefined;
}

/** Outcome of a Standard Schema's validation. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** One problem that a Standard Schema found. */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The Standard JSON Schema interface, as far as we use it: the JSON Schema of what goes in. */
export interface StandardJsonProps {
  readonly jsonSchema: {
    readonly input: (options: { readonly target: "draft-2020-12" }) => Record<string, unknown>;
  };
}
