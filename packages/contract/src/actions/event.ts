import { DefinitionError } from "../errors/definition-error.ts";
import { compileSchema } from "../schema/compile-schema.ts";
import type { CompiledSchema } from "../schema/compiled-schema.ts";
import type { Carried, Fixed, InputOf, SchemaLike } from "../schema/schema-like.ts";

/** Members of a payload that can be a subject parameter: required texts, numbers and booleans. */
export type ParamName<P extends SchemaLike> = ParamOf<InputOf<P>>;
type ParamOf<T> = T extends object
  ? { [K in keyof T & string]-?: T[K] extends string | number | boolean ? K : never }[keyof T & string]
  : never;

/** Definition of an event. */
export interface EventDefinition<P extends SchemaLike> {
  readonly title?: string;
  readonly description?: string;
  readonly payload: P;
  /** Members of the payload that go into the subject, in this order, so that a consumer can filter by them. */
  readonly params?: readonly ParamName<P>[];
}

/** An event of an API. */
export interface EventAction<P extends SchemaLike = SchemaLike> {
  readonly kind: "event";
  /** Dotted name, empty until an API holds it. */
  readonly name: string;
  /** Id of the API that holds it, empty until one does. */
  readonly api: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly schemas: { readonly payload: P };
  readonly payload: CompiledSchema;
  readonly params: readonly string[];
}

/** As the implementation sees it: `ParamName` of any schema would make the compiler work for nothing. */
interface AnyEventDefinition extends Omit<EventDefinition<never>, "payload" | "params"> {
  readonly payload: SchemaLike;
  readonly params?: readonly string[];
}

/** Defines an event. */
export function event<P extends SchemaLike>(
  definition: EventDefinition<P> & { readonly payload: Carried<P> },
): EventAction<Fixed<P>>;
export function event(definition: AnyEventDefinition): EventAction {
  const { payload, params = [] } = definition;
  if (new Set(params).size !== params.length) {
    throw new DefinitionError({ place: "event params", problem: "a param is listed twice" });
  }
  return {
    kind: "event",
    name: "",
    api: "",
    title: definition.title,
    description: definition.description,
    schemas: { payload },
    payload: compileSchema(payload),
    params,
  };
}
