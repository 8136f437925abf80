import type { JsonObject, JsonValue } from "@trellis/result";
import { couldBe, listAt, recordAt } from "./compare-keywords.ts";
import { type Comparison, type Inside, insideOf, member, type SubsetFinding } from "./comparison.ts";

/** Both sides of a comparison of objects. */
interface ObjectPair {
  readonly path: string;
  readonly from: ObjectShape;
  readonly to: ObjectShape;
  /** Compares a member of `from` with a schema of `to`. */
  readonly inside: Inside;
}

interface ObjectShape {
  readonly named: Readonly<Record<string, JsonValue>>;
  readonly patterns: Readonly<Record<string, JsonValue>>;
  readonly required: readonly string[];
  readonly others: JsonValue | undefined;
}

/** Compares members of objects. */
export function compareObjects(
  comparison: Comparison,
  from: JsonObject,
  to: JsonObject,
): readonly SubsetFinding[] {
  if (!couldBe(from, "object")) return [];
  const pair: ObjectPair = {
    path: comparison.path,
    from: shapeOf(from),
    to: shapeOf(to),
    inside: insideOf(comparison),
  };
  return [...compareRequired(pair), ...compareNamed(pair), ...comparePatterns(pair), ...compareOthers(pair)];
}

function shapeOf(schema: JsonObject): ObjectShape {
  return {
    named: defined(recordAt(schema, "properties")),
    patterns: defined(recordAt(schema, "patternProperties")),
    required: listAt(schema, "required"),
    others: schema["additionalProperties"],
  };
}

function defined(record: JsonObject): Readonly<Record<string, JsonValue>> {
  return Object.fromEntries(
    Object.entries(record).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined),
  );
}

function compareRequired({ path, from, to }: ObjectPair): readonly SubsetFinding[] {
  return to.required
    .filter((name) => !from.required.includes(name))
    .map((name) => ({ path: member(path, name), reason: "it is required and may be missing" }));
}

/** Each named member must fit whatever `to` says about its name. */
function compareNamed({ path, from, to, inside }: ObjectPair): readonly SubsetFinding[] {
  return Object.entries(from.named).flatMap(([name, schema]) => {
    if (schema === false) return [];
    const targets = targetsOf(to, name);
    if (targets.length === 0 && to.others === false) {
      return [{ path: member(path, name), reason: "it is not known here, and the object is closed" }];
    }
    if (targets.length === 0 && to.others !== undefined) return inside(name, schema, to.others);
    return targets.flatMap((target) => inside(name, schema, target));
  });
}

function targetsOf(shape: ObjectShape, name: string): readonly JsonValue[] {
  const named = Object.hasOwn(shape.named, name) ? [shape.named[name] ?? true] : [];
  const patterned = Object.entries(shape.patterns).filter(([pattern]) => new RegExp(pattern, "u").test(name));
  return [...named, ...patterned.map(([, schema]) => schema)];
}

/** Members by pattern: the same pattern on both sides is compared, anything else only where it is plain. */
function comparePatterns({ path, from, to, inside }: ObjectPair): readonly SubsetFinding[] {
  const findings: SubsetFinding[] = [];
  for (const [pattern, schema] of Object.entries(from.patterns)) {
    const target = Object.hasOwn(to.patterns, pattern) ? to.patterns[pattern] : to.others;
    if (target === false)
      findings.push({ path, reason: `members like ${pattern} were allowed and are refused` });
    else if (target !== undefined) findings.push(...inside("*", schema, target));
    for (const [name, named] of Object.entries(to.named)) {
      if (Object.hasOwn(from.named, name) || !new RegExp(pattern, "u").test(name)) continue;
      findings.push(...inside(name, schema, named));
    }
  }
  for (const [pattern, schema] of Object.entries(to.patterns)) {
    if (Object.hasOwn(from.patterns, pattern)) continue;
    if (Object.keys(from.patterns).length > 0)
      findings.push({ path, reason: `members like ${pattern} follow a new rule` });
    else if (from.others !== undefined && from.others !== false)
      findings.push(...inside("*", from.others, schema));
  }
  return findings;
}

/**
 * Members that neither side names. A sender whose schema is merely open is taken not to send what it does not name;
 * one that says what the others look like does send them.
 */
function compareOthers({ path, from, to, inside }: ObjectPair): readonly SubsetFinding[] {
  if (from.others === false || isCatchAll(from)) return [];
  if (to.others === false && !isCatchAll(to))
    return [{ path, reason: "unknown members were allowed and are refused" }];
  const target = isCatchAll(to) ? undefined : to.others;
  if (from.others === undefined)
    return target === undefined || target === true ? [] : inside("*", true, target);
  const findings = target === undefined ? [] : [...inside("*", from.others, target)];
  for (const [name, schema] of Object.entries(to.named)) {
    if (!Object.hasOwn(from.named, name)) findings.push(...inside(name, from.others, schema));
  }
  return findings;
}

/** A pattern that any name matches leaves nothing to `additionalProperties`. */
function isCatchAll({ patterns }: ObjectShape): boolean {
  return Object.keys(patterns).some(
    (pattern) => pattern === "" || pattern === "^.*$" || pattern === "^(.*)$" || pattern === ".*",
  );
}
