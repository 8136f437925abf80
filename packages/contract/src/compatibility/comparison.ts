import type { JsonObject, JsonValue } from "@trellis/result";
import { escapePointer } from "../schema/walk.ts";

/** Why a value of one schema may not fit another. */
export interface SubsetFinding {
  /** JSON pointer into the value, with `*` for any item and any member. */
  readonly path: string;
  readonly reason: string;
}

/** A schema with the document that its references point into. */
export interface Located {
  readonly schema: JsonValue;
  readonly root: JsonObject;
}

/** One comparison: does every value of `from` fit `to`? */
export interface Comparison {
  readonly from: Located;
  readonly to: Located;
  readonly path: string;
  /** Pairs of references that are being compared: met again, they are taken to fit (coinduction). */
  readonly assumed: ReadonlySet<string>;
  /** The way back from a keyword to the comparison of what stands inside it. */
  readonly compare: (inner: Comparison) => readonly SubsetFinding[];
}

/** Compares schemas one member deeper. */
export type Inside = (name: string, from: JsonValue, to: JsonValue) => readonly SubsetFinding[];

/** The comparison of members of both sides of `comparison`. */
export function insideOf(comparison: Comparison): Inside {
  const { from, to, path, compare } = comparison;
  return (name, a, b) =>
    compare({
      ...comparison,
      from: { ...from, schema: a },
      to: { ...to, schema: b },
      path: member(path, name),
    });
}

/** A path one member deeper. */
export function member(path: string, name: string): string {
  return `${path}/${escapePointer(name)}`;
}
