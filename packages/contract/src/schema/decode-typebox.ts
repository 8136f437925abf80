import { Check } from "typebox/value";
import { escapePointer } from "./walk.ts";

/** A codec that threw, and where. */
export class CodecFailure extends Error {
  readonly path: string;

  constructor(path: string, cause: unknown) {
    super(cause instanceof Error ? cause.message : "does not decode", { cause });
    this.path = path;
  }
}

/** What of a TypeBox schema leads to a codec. */
interface Node {
  readonly "~codec"?: { readonly decode: (value: unknown) => unknown };
  readonly $defs?: Readonly<Record<string, Node>>;
  readonly $ref?: string;
  readonly anyOf?: readonly Node[];
  readonly allOf?: readonly Node[];
  readonly items?: Node | readonly Node[];
  readonly properties?: Readonly<Record<string, Node>>;
  readonly patternProperties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: Node | boolean;
}

interface Place {
  readonly path: string;
  readonly defs: Readonly<Record<string, Node>>;
}

/**
 * Runs the codecs of a TypeBox schema over a value that fits it, innermost first, and changes nothing else: what the
 * schema does not name stays (TypeBox's own decoder drops it in intersections), and so does the given value.
 * Throws a {@link CodecFailure}.
 */
export function decodeTypeBox(schema: object, value: unknown): unknown {
  return decodeNode(schema, value, { path: "", defs: {} });
}

function decodeNode(node: Node, value: unknown, place: Place): unknown {
  const inside = decodeInside(node, value, place);
  const codec = node["~codec"];
  if (codec === undefined) return inside;
  try {
    return codec.decode(inside);
  } catch (cause) {
    throw new CodecFailure(place.path, cause);
  }
}

function decodeInside(node: Node, value: unknown, place: Place): unknown {
  if (node.$ref !== undefined) {
    const defs = node.$defs === undefined ? place.defs : { ...place.defs, ...node.$defs };
    const target = defs[node.$ref];
    return target === undefined ? value : decodeNode(target, value, { ...place, defs });
  }
  if (node.anyOf !== undefined) {
    const branch = bestBranch(node.anyOf, value, place);
    return branch === undefined ? value : decodeNode(branch, value, place);
  }
  if (node.allOf !== undefined) return decodeAll(node.allOf, value, place);
  if (Array.isArray(value)) return decodeArray(node, value, place);
  return typeof value === "object" && value !== null ? decodeObject(node, value, place) : value;
}

/** Of the branches that fit, the one that names most of the value's members; the first of equals. */
function bestBranch(branches: readonly Node[], value: unknown, { defs }: Place): Node | undefined {
  let best: Node | undefined;
  let most = -1;
  for (const branch of branches) {
    if (!Check(defs, branch, value)) continue;
    const named = typeof value === "object" && value !== null ? countNamed(branch, value) : 0;
    if (named > most) [best, most] = [branch, named];
  }
  return best;
}

function countNamed(branch: Node, value: object): number {
  const own = Object.keys(branch.properties ?? {}).filter((name) => Object.hasOwn(value, name)).length;
  return (branch.allOf ?? []).reduce((sum, part) => sum + countNamed(part, value), own);
}

/** What any part of an intersection changes is changed. */
function decodeAll(parts: readonly Node[], value: unknown, place: Place): unknown {
  let result = value;
  for (const part of parts) {
    const decoded = decodeNode(part, value, place);
    if (decoded === value) continue;
    result =
      isPlain(result) && isPlain(decoded) && isPlain(value) ? overlaid(result, decoded, value) : decoded;
  }
  return result;
}

function overlaid(result: object, decoded: object, original: object): object {
  const before = new Map<string, unknown>(Object.entries(original));
  const changes = Object.entries(decoded).filter(([name, member]) => before.get(name) !== member);
  return Object.fromEntries([...Object.entries(result), ...changes]);
}

function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function decodeArray({ items }: Node, value: readonly unknown[], place: Place): readonly unknown[] {
  if (items === undefined) return value;
  const decoded = value.map((item, index) => {
    const node = isList(items) ? items[index] : items;
    return node === undefined ? item : decodeNode(node, item, { ...place, path: `${place.path}/${index}` });
  });
  return decoded.every((item, index) => item === value[index]) ? value : decoded;
}

function decodeObject(node: Node, value: object, place: Place): object {
  let changed = false;
  const entries = Object.entries(value).map(([name, member]): [string, unknown] => {
    const schema = member === undefined ? undefined : schemaOf(node, name);
    if (schema === undefined) return [name, member];
    const decoded = decodeNode(schema, member, { ...place, path: `${place.path}/${escapePointer(name)}` });
    changed ||= decoded !== member;
    return [name, decoded];
  });
  return changed ? Object.fromEntries(entries) : value;
}

function schemaOf(node: Node, name: string): Node | undefined {
  const { properties = {}, patternProperties = {}, additionalProperties } = node;
  if (Object.hasOwn(properties, name)) return properties[name];
  for (const [pattern, schema] of Object.entries(patternProperties)) {
    if (new RegExp(pattern, "u").test(name)) return schema;
  }
  return typeof additionalProperties === "object" ? additionalProperties : undefined;
}

function isList(items: Node | readonly Node[]): items is readonly Node[] {
  return Array.isArray(items);
}
