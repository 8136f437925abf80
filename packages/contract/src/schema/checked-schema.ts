import { isMultipleOf } from "./multiple-of.ts";
import type { TypeBoxSchema } from "./schema-like.ts";
import { LIST_KEYWORDS, ONE_KEYWORDS, RECORD_KEYWORDS } from "./walk.ts";

/** TypeBox's refinement keyword, which its compiler and its interpreter both know. */
interface Refinement {
  readonly check: (value: unknown) => boolean;
  readonly error: (value: unknown) => string;
}

type Node = Readonly<Record<string, unknown>>;

/**
 * The schema by which values are checked. Two keywords become refinements, which TypeBox runs last and only when all
 * else fits:
 *
 * - `multipleOf`: TypeBox's own check allows an absolute error, which refuses large sums of money;
 * - `pattern` beside `maxLength`: TypeBox collects errors by every keyword, so a text that is too long would still be
 *   searched.
 *
 * The very same object when there is neither.
 */
export function checkedSchema(schema: TypeBoxSchema): TypeBoxSchema {
  return needsChange(schema) ? (rewritten(schema) as TypeBoxSchema) : schema;
}

function needsChange(value: unknown): boolean {
  return isNode(value) && (refinementsOf(value).length > 0 || childrenOf(value).some(needsChange));
}

function refinementsOf({ multipleOf, pattern, maxLength }: Node): readonly Refinement[] {
  const refinements: Refinement[] = [];
  if (typeof multipleOf === "number") {
    refinements.push({
      check: (value) => typeof value !== "number" || isMultipleOf(value, multipleOf),
      error: () => `must be a multiple of ${multipleOf}`,
    });
  }
  if (typeof maxLength === "number" && (typeof pattern === "string" || pattern instanceof RegExp)) {
    const expression = typeof pattern === "string" ? new RegExp(pattern, "u") : pattern;
    refinements.push({
      check: (value) => typeof value !== "string" || expression.test(value),
      error: () => `must match the pattern ${expression.source}`,
    });
  }
  return refinements;
}

const OWN = { writable: true, configurable: true } as const;

function rewritten(value: unknown): unknown {
  if (!isNode(value)) return value;
  // By descriptors, since TypeBox keeps its marks (`~kind`, `~codec`, ...) out of enumeration.
  const copy: Record<string, unknown> = Object.create(
    Object.getPrototypeOf(value),
    Object.getOwnPropertyDescriptors(value),
  );
  const replace = (keyword: string, changed: unknown, enumerable = true): void => {
    Object.defineProperty(copy, keyword, { ...OWN, value: changed, enumerable });
  };
  for (const keyword of ONE_KEYWORDS) if (isNode(value[keyword])) replace(keyword, rewritten(value[keyword]));
  for (const keyword of LIST_KEYWORDS) {
    const list = value[keyword];
    if (Array.isArray(list)) replace(keyword, list.map(rewritten));
  }
  for (const keyword of RECORD_KEYWORDS) {
    const record = value[keyword];
    if (!isNode(record)) continue;
    replace(
      keyword,
      Object.fromEntries(Object.entries(record).map(([name, member]) => [name, rewritten(member)])),
    );
  }
  const refinements = refinementsOf(value);
  if (refinements.length === 0) return copy;
  delete copy["multipleOf"];
  if (typeof value["maxLength"] === "number") delete copy["pattern"];
  const others = (value["~refine"] ?? []) as readonly Refinement[];
  replace("~refine", [...others, ...refinements], false);
  return copy;
}

function childrenOf(node: Node): readonly unknown[] {
  return [
    ...ONE_KEYWORDS.map((keyword) => node[keyword]),
    ...LIST_KEYWORDS.flatMap((keyword) => node[keyword]),
    ...RECORD_KEYWORDS.flatMap((keyword) => (isNode(node[keyword]) ? Object.values(node[keyword]) : [])),
  ];
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof RegExp);
}
