import type { AnyDeclaredErrorClass } from "../errors/declared-error.ts";
import { compileSchema } from "../schema/compile-schema.ts";
import type { CompiledSchema } from "../schema/compiled-schema.ts";
import type { Carried, Fixed, MaybeSchema } from "../schema/schema-like.ts";
import { errorTable } from "./error-table.ts";

/** Says that a call may be repeated. `true`: by the runtime, with the same request id. With a key: for ever. */
export type Idempotency = true | { readonly key: string };

/** Definition of an RPC. Without `input` it is called with nothing, without `output` it answers with nothing. */
export interface RpcDefinition<
  I extends MaybeSchema,
  O extends MaybeSchema,
  E extends AnyDeclaredErrorClass,
> {
  readonly title?: string;
  readonly description?: string;
  readonly input?: I;
  readonly output?: O;
  /** The errors that a caller must expect, made by `defineError`. */
  readonly errors?: readonly E[];
  /** `true`: safe to repeat, so a lost connection is retried. `{ key }`: JSON pointer of an idempotency key in the input. */
  readonly idempotent?: Idempotency;
  /** Whether calls of one tick may share a frame. Default true. */
  readonly coalesce?: boolean;
  /** The answer is a grant to download bytes. */
  readonly download?: boolean;
}

/** A remote procedure of an API. `I`, `O`: its schemas; `E`: union of the classes of its errors. */
export interface RpcAction<
  I extends MaybeSchema = MaybeSchema,
  O extends MaybeSchema = MaybeSchema,
  E extends AnyDeclaredErrorClass = AnyDeclaredErrorClass,
> {
  readonly kind: "rpc";
  /** Dotted name, empty until an API holds it. */
  readonly name: string;
  /** Id of the API that holds it, empty until one does. */
  readonly api: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
  /** The schemas as they were given: where types come from. */
  readonly schemas: { readonly input: I; readonly output: O };
  readonly input: CompiledSchema | undefined;
  readonly output: CompiledSchema | undefined;
  /** Declared errors by name. */
  readonly errors: Readonly<Record<string, E>>;
  readonly idempotent: Idempotency | false;
  readonly coalesce: boolean;
  readonly download: boolean;
}

/** Defines an RPC. */
export function rpc<
  I extends MaybeSchema = undefined,
  O extends MaybeSchema = undefined,
  E extends AnyDeclaredErrorClass = never,
>(
  definition?: RpcDefinition<I, O, E> & { readonly input?: Carried<I>; readonly output?: Carried<O> },
): RpcAction<Fixed<I>, Fixed<O>, Fixed<E>>;
export function rpc(
  definition: RpcDefinition<MaybeSchema, MaybeSchema, AnyDeclaredErrorClass> = {},
): RpcAction {
  const { input, output } = definition;
  return {
    kind: "rpc",
    name: "",
    api: "",
    title: definition.title,
    description: definition.description,
    schemas: { input, output },
    input: input === undefined ? undefined : compileSchema(input),
    output: output === undefined ? undefined : compileSchema(output),
    errors: errorTable("rpc", definition.errors ?? []),
    idempotent: definition.idempotent ?? false,
    coalesce: definition.coalesce ?? true,
    download: definition.download ?? false,
  };
}
