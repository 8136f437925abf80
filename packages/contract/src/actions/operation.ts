import type { AnyDeclaredErrorClass } from "../errors/declared-error.ts";
import { DefinitionError } from "../errors/definition-error.ts";
import { compileSchema } from "../schema/compile-schema.ts";
import type { CompiledSchema } from "../schema/compiled-schema.ts";
import type { Carried, Fixed, MaybeSchema, SchemaLike } from "../schema/schema-like.ts";
import { parseSize, type Size } from "../units.ts";
import { errorTable } from "./error-table.ts";

/** The types of an operation, as schemas. */
export interface OperationSchemas {
  readonly input: MaybeSchema;
  readonly output: MaybeSchema;
  readonly progress: MaybeSchema;
  readonly update: MaybeSchema;
  readonly signals: Readonly<Record<string, SchemaLike>>;
}

/** Bytes that a caller sends along with an operation. */
export interface UploadDefinition {
  /** Alias of the service's store where they are staged. May be left out where there is one store. */
  readonly store?: string;
  readonly maxSize?: Size;
}

/** Upload as the runtime reads it. */
export interface UploadPolicy {
  readonly store: string | undefined;
  readonly maxBytes: number | undefined;
}

/** Definition of an operation: a durable, restartable workflow that its caller can watch. */
export interface OperationDefinition<
  I extends MaybeSchema,
  O extends MaybeSchema,
  P extends MaybeSchema,
  U extends MaybeSchema,
  S extends Readonly<Record<string, SchemaLike>>,
  E extends AnyDeclaredErrorClass,
> {
  readonly title?: string;
  readonly description?: string;
  readonly input?: I;
  readonly output?: O;
  /** Kept with the operation, conflated to the newest. */
  readonly progress?: P;
  /** Live only. */
  readonly update?: U;
  /** What a caller may send to a running operation, by name. */
  readonly signals?: S;
  readonly errors?: readonly E[];
  /** Whether its caller may cancel it. Default false. */
  readonly cancel?: boolean;
  readonly upload?: true | UploadDefinition;
}

/** An operation of an API. `T`: its schemas; `E`: union of error classes. */
export interface OperationAction<
  T extends OperationSchemas = OperationSchemas,
  E extends AnyDeclaredErrorClass = AnyDeclaredErrorClass,
> {
  readonly kind: "operation";
  /** Dotted name, empty until an API holds it. */
  readonly name: string;
  /** Id of the API that holds it, empty until one does. */
  readonly api: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly schemas: T;
  readonly input: CompiledSchema | undefined;
  readonly output: CompiledSchema | undefined;
  readonly progress: CompiledSchema | undefined;
  readonly update: CompiledSchema | undefined;
  readonly signals: Readonly<Record<string, CompiledSchema>>;
  readonly errors: Readonly<Record<string, E>>;
  readonly cancel: boolean;
  readonly upload: UploadPolicy | false;
}

type AnyOperationDefinition = OperationDefinition<
  MaybeSchema,
  MaybeSchema,
  MaybeSchema,
  MaybeSchema,
  Readonly<Record<string, SchemaLike>>,
  AnyDeclaredErrorClass
>;

/** Defines an operation. */
export function operation<
  I extends MaybeSchema = undefined,
  O extends MaybeSchema = undefined,
  P extends MaybeSchema = undefined,
  U extends MaybeSchema = undefined,
  S extends Readonly<Record<string, SchemaLike>> = Readonly<Record<never, never>>,
  E extends AnyDeclaredErrorClass = never,
>(
  definition: OperationDefinition<I, O, P, U, S, E> & {
    readonly input?: Carried<I>;
    readonly output?: Carried<O>;
    readonly progress?: Carried<P>;
    readonly update?: Carried<U>;
    readonly signals?: { readonly [K in keyof S]: Carried<S[K]> };
  },
): OperationAction<
  { input: Fixed<I>; output: Fixed<O>; progress: Fixed<P>; update: Fixed<U>; signals: Fixed<S> },
  Fixed<E>
>;
export function operation(given: AnyOperationDefinition): OperationAction {
  const signals = given.signals ?? {};
  return {
    kind: "operation",
    name: "",
    api: "",
    title: given.title,
    description: given.description,
    schemas: {
      input: given.input,
      output: given.output,
      progress: given.progress,
      update: given.update,
      signals,
    },
    input: maybe(given.input),
    output: maybe(given.output),
    progress: maybe(given.progress),
    update: maybe(given.update),
    signals: compileSignals(signals),
    errors: errorTable("operation", given.errors ?? []),
    cancel: given.cancel ?? false,
    upload: given.upload === undefined ? false : uploadPolicy(given.upload),
  };
}

function maybe(schema: MaybeSchema): CompiledSchema | undefined {
  return schema === undefined ? undefined : compileSchema(schema);
}

const SIGNAL_NAME = /^[A-Za-z][A-Za-z0-9]{0,127}$/;

function compileSignals(
  signals: Readonly<Record<string, SchemaLike>>,
): Readonly<Record<string, CompiledSchema>> {
  for (const name of Object.keys(signals)) {
    if (SIGNAL_NAME.test(name)) continue;
    throw new DefinitionError({
      place: `operation signal ${JSON.stringify(name)}`,
      problem: "this is not a name for a signal",
      hint: "Write letters and digits, beginning with a letter",
    });
  }
  return Object.fromEntries(Object.entries(signals).map(([name, schema]) => [name, compileSchema(schema)]));
}

function uploadPolicy(upload: true | UploadDefinition): UploadPolicy {
  const { store, maxSize } = upload === true ? ({} as UploadDefinition) : upload;
  return {
    store,
    maxBytes: maxSize === undefined ? undefined : parseSize(maxSize, "operation upload maxSize"),
  };
}
