import { compileSchema } from "../schema/compile-schema.ts";
import type { Carried, InputOf, MaybeSchema, NotJson, OutputOf, SchemaLike } from "../schema/schema-like.ts";
import {
  type AnyDeclaredErrorClass,
  DeclaredError,
  type DeclaredErrorClass,
  type DeclaredErrorOptions,
} from "./declared-error.ts";
import { DefinitionError } from "./definition-error.ts";

/** Definition of an API's own error. */
export interface ErrorDefinition<S extends MaybeSchema> {
  /** Schema of what the error tells. It must not transform: both sides read the same. */
  readonly data?: S;
  /** Text for people. By default the name in words. */
  readonly message?: string | ((data: InputOf<S>) => string);
}

type Untransformed<S extends MaybeSchema> = S extends SchemaLike
  ? [InputOf<S>] extends [OutputOf<S>]
    ? unknown
    : NotJson<"The data of an error must not transform or fill in defaults: both sides read it in the same form">
  : unknown;

/** As the implementation sees it: data of any schema. */
interface AnyErrorDefinition {
  readonly data?: SchemaLike;
  readonly message?: string | ((data: never) => string);
}

const ERROR_NAME = /^[A-Z][A-Za-z0-9]{0,127}$/;

/**
 * Defines an expected failure: `defineError("OutOfStock", { data })` gives a class to list in `errors`, to return or
 * throw in a handler, and to meet again (`instanceof`) at the caller.
 */
export function defineError<const Name extends string, S extends MaybeSchema = undefined>(
  name: Name,
  definition?: ErrorDefinition<S> & { readonly data?: Carried<S> & Untransformed<S> },
): DeclaredErrorClass<Name, InputOf<S>>;
export function defineError(name: string, definition: AnyErrorDefinition = {}): AnyDeclaredErrorClass {
  const place = `Error ${JSON.stringify(name)}`;
  if (!ERROR_NAME.test(name)) {
    throw new DefinitionError({
      place,
      problem: "this is not a name for an error",
      hint: "Write letters and digits, beginning with a capital, like OutOfStock",
    });
  }
  const { data: schema, message } = definition;
  const dataSchema = schema === undefined ? undefined : compileSchema(schema);
  if (dataSchema?.transforms === true && schema !== undefined && !("~standard" in schema)) {
    throw new DefinitionError({ place, problem: "the data of an error must not transform" });
  }
  const textFor = (data: unknown): string =>
    typeof message === "function" ? message(data as never) : (message ?? inWords(name));

  class Declared extends DeclaredError {
    static readonly errorName = name;
    static readonly dataSchema = dataSchema;
    override readonly type = name;

    constructor(options: DeclaredErrorOptions & { readonly data?: unknown } = {}) {
      super(options.message ?? textFor(options.data), options.data, options);
    }
  }
  Object.defineProperty(Declared, "name", { value: name });
  return Declared;
}

/** `OutOfStock` in words: `Out of stock`. */
function inWords(name: string): string {
  const words = name.replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
