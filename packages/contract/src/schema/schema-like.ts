import type { StaticDecode, StaticEncode } from "typebox";
import type { StandardSchemaV1 } from "./standard-schema.ts";

/**
 * A TypeBox schema. TypeBox's own `TSchema` is an empty interface, which anything satisfies; its builders all leave
 * one of these marks.
 */
export type TypeBoxSchema = { readonly "~kind": string } | { readonly "~unsafe": unknown };

/** Any schema that a contract takes: TypeBox natively, else what speaks Standard Schema (zod, valibot, arktype). */
export type SchemaLike = TypeBoxSchema | StandardSchemaV1;

/** A schema, or none: an action without input or output. */
export type MaybeSchema = SchemaLike | undefined;

/** What the sender gives: the schema's input form, which is also what the wire carries. `void` without a schema. */
export type InputOf<S extends MaybeSchema> =
  S extends StandardSchemaV1<infer Input, unknown> ? Input : S extends TypeBoxSchema ? StaticEncode<S> : void;

/** What the receiver gets: the schema's output form, after defaults and transforms. `void` without a schema. */
export type OutputOf<S extends MaybeSchema> =
  S extends StandardSchemaV1<unknown, infer Output>
    ? Output
    : S extends TypeBoxSchema
      ? StaticDecode<S>
      : void;

/** Marks, in a compiler's message, a schema that a contract cannot carry. */
export interface NotJson<Problem extends string> {
  readonly "~problem": Problem;
}

type Uncarried =
  | bigint
  | symbol
  | ((...args: never) => unknown)
  | Date
  | RegExp
  | Error
  | Uint8Array
  | ArrayBuffer;
type UncarriedContainer =
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | WeakMap<WeakKey, unknown>
  | PromiseLike<unknown>;

/** `T` with everything that JSON cannot carry turned into `never`. What cannot be told (`unknown`) passes. */
export type JsonForm<T> = unknown extends T
  ? unknown
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends Uncarried | UncarriedContainer
      ? never
      : T extends readonly unknown[]
        ? { [K in keyof T]: unknown extends T[K] ? T[K] : undefined extends T[K] ? never : JsonForm<T[K]> }
        : { [K in keyof T]: JsonForm<T[K]> };

/** Accepts a schema whose input JSON can carry; else names the problem in the error that the user sees. */
export type Carried<S extends MaybeSchema> = S extends SchemaLike
  ? [InputOf<S>] extends [JsonForm<InputOf<S>>]
    ? unknown
    : NotJson<"JSON cannot carry this schema's input (a Date, bigint, Map, Set, function, undefined in an array): transform it from a string or number">
  : unknown;

/**
 * `T`, but nothing is inferred from the place where it stands. Builders return their types so: else a call inside
 * `defineApi({ rpc: { ... } })` would take what it leaves out from the constraint of its surroundings.
 */
export type Fixed<T> = [T][T extends unknown ? 0 : never];
