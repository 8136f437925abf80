import type { TypeBoxSchema } from "./schema-like.ts";

/**
 * True when `value` is a multiple of `divisor` as people mean it: exactly for whole numbers, else when it is the
 * double nearest to a decimal multiple, give or take one unit in the last place. So 143.48 is a multiple of 0.01,
 * and 143.485 is not. Where doubles lie further apart than the divisor, every one of them passes.
 */
export function isMultipleOf(value: number, divisor: number): boolean {
  if (Number.isInteger(value) && Number.isInteger(divisor)) return value % divisor === 0;
  const quotient = value / divisor;
  if (!Number.isFinite(quotient)) return true;
  return Math.abs(Math.round(quotient) * divisor - value) <= 2 * Number.EPSILON * Math.abs(value);
}

/** Keywords whose value is data, not a schema. */
const DATA: ReadonlySet<string> = new Set(["const", "default", "enum", "examples"]);

/**
 * The schema with every `multipleOf` turned into a refinement by {@link isMultipleOf}: TypeBox's own check allows an
 * absolute error, which refuses large sums of money. The very same object when there is none.
 */
export function withExactMultiples(schema: TypeBoxSchema): TypeBoxSchema {
  return mentionsMultiple(schema) ? (rewrite(schema) as TypeBoxSchema) : schema;
}

const OWN = { writable: true, configurable: true } as const;

function mentionsMultiple(node: unknown): boolean {
  if (typeof node !== "object" || node === null) return false;
  if (Array.isArray(node)) return node.some(mentionsMultiple);
  return Object.entries(node).some(
    ([key, value]) =>
      (key === "multipleOf" && typeof value === "number") || (!DATA.has(key) && mentionsMultiple(value)),
  );
}

/** TypeBox's refinement keyword, which its compiler and its interpreter both know. */
interface Refinement {
  readonly check: (value: unknown) => boolean;
  readonly error: (value: unknown) => string;
}

function rewrite(node: unknown): unknown {
  if (typeof node !== "object" || node === null || node instanceof RegExp) return node;
  if (Array.isArray(node)) return node.map(rewrite);
  // By descriptors, since TypeBox keeps its marks (`~kind`, `~codec`, ...) out of enumeration.
  const copy: Record<string, unknown> = Object.create(
    Object.getPrototypeOf(node),
    Object.getOwnPropertyDescriptors(node),
  );
  for (const [key, value] of Object.entries(node)) {
    if (!DATA.has(key) && typeof value === "object")
      Object.defineProperty(copy, key, { ...OWN, value: rewrite(value), enumerable: true });
  }
  const divisor = copy["multipleOf"];
  if (typeof divisor !== "number") return copy;
  delete copy["multipleOf"];
  const others = (copy["~refine"] ?? []) as readonly Refinement[];
  const refinement: Refinement = {
    check: (value) => typeof value !== "number" || isMultipleOf(value, divisor),
    error: () => `must be a multiple of ${divisor}`,
  };
  Object.defineProperty(copy, "~refine", { ...OWN, value: [...others, refinement], enumerable: false });
  return copy;
}
