import type { StaticDecode, StaticEncode } from "typebox";

/**
 * A TypeBox schema. TypeBox's own `TSchema` is an empty interface, which anything satisfies; its builders all leave
 * one of these marks.
 */
export type TypeBoxSchema = { readonly "~kind": string } | { readonly "~unsafe": unknown };

/**
 * A Standard Schema, told by its mark alone: comparing the whole interface with every schema of every action would
 * be the dearest part of checking a contract. That it validates is checked when it is compiled.
 */
export interface AnyStandardSchema {
  readonly "~standard": { readonly version: 1; readonly vendor: string };
}

/** Any schema that a contract takes: TypeBox natively, else what speaks Standard Schema (zod, valibot, arktype). */
export type SchemaLike = TypeBoxSchema | AnyStandardSchema;

/** A schema, or none: an action without input or output. */
export type MaybeSchema = SchemaLike | undefined;

interface StandardTypes<Input, Output> {
  readonly "~standard": { readonly types?: { readonly input: Input; readonly output: Output } | undefined };
}

/** What the sender gives: the schema's input form, which is also what the wire carries. `void` without a schema. */
export type InputOf<S extends MaybeSchema> = S extends TypeBoxSchema
  ? StaticEncode<S>
  : S extends StandardTypes<infer Input, unknown>
    ? Input
    : void;

/** What the receiver gets: the schema's output form, after defaults and transforms. `void` without a schema. */
export type OutputOf<S extends MaybeSchema> = S extends TypeBoxSchema
  ? StaticDecode<S>
  : S extends StandardTypes<unknown, infer Output>
    ? Output
    : void;

/** Marks, in a compiler's message, a schema that a contract cannot carry. */
export interface NotJson<Problem extends string> {
  readonly "~problem": Problem;
}

type Scalar = string | number | boolean | null | undefined;

type Uncarried =
  | bigint
  | symbol
  | ((...args: never) => unknown)
  | Date
  | RegExp
  | Error
  | Uint8Array
  | ArrayBuffer
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | WeakMap<WeakKey, unknown>
  | PromiseLike<unknown>;

/** `T` with everything that JSON cannot carry turned into `never`. What cannot be told (`unknown`) passes. */
export type JsonForm<T> = [T] extends [Scalar] ? T : unknown extends T ? unknown : JsonFormOfMember<T>;

type JsonFormOfMember<T> = T extends Scalar
  ? T
  : T extends Uncarried
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
