import type { AnyDeclaredErrorClass } from "../errors/declared-error.ts";
import { compileSchema } from "../schema/compile-schema.ts";
import type { CompiledSchema } from "../schema/compiled-schema.ts";
import type { Carried, Fixed, MaybeSchema, SchemaLike } from "../schema/schema-like.ts";
import { errorTable } from "./error-table.ts";

/** Definition of a feed: a live view, opened by one caller with one input. */
export interface FeedDefinition<
  I extends MaybeSchema,
  V extends SchemaLike,
  E extends AnyDeclaredErrorClass,
> {
  readonly title?: string;
  readonly description?: string;
  readonly input?: I;
  /** Schema of one item. */
  readonly event: V;
  readonly errors?: readonly E[];
}

/** A feed of an API. `I`: schema of what opens it; `V`: schema of an item; `E`: union of error classes. */
export interface FeedAction<
  I extends MaybeSchema = MaybeSchema,
  V extends SchemaLike = SchemaLike,
  E extends AnyDeclaredErrorClass = AnyDeclaredErrorClass,
> {
  readonly kind: "feed";
  /** Dotted name, empty until an API holds it. */
  readonly name: string;
  /** Id of the API that holds it, empty until one does. */
  readonly api: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly schemas: { readonly input: I; readonly event: V };
  readonly input: CompiledSchema | undefined;
  readonly event: CompiledSchema;
  readonly errors: Readonly<Record<string, E>>;
}

/** Defines a feed. */
export function feed<
  V extends SchemaLike,
  I extends MaybeSchema = undefined,
  E extends AnyDeclaredErrorClass = never,
>(
  definition: FeedDefinition<I, V, E> & { readonly input?: Carried<I>; readonly event: Carried<V> },
): FeedAction<Fixed<I>, Fixed<V>, Fixed<E>>;
export function feed(definition: FeedDefinition<MaybeSchema, SchemaLike, AnyDeclaredErrorClass>): FeedAction {
  const { input, event } = definition;
  return {
    kind: "feed",
    name: "",
    api: "",
    title: definition.title,
    description: definition.description,
    schemas: { input, event },
    input: input === undefined ? undefined : compileSchema(input),
    event: compileSchema(event),
    errors: errorTable("feed", definition.errors ?? []),
  };
}
