/** What is wrong with a value, and where: the form of a schema's issues. */
export interface JsonIssue {
  /** JSON pointer (RFC 6901); `""` is the whole value. */
  readonly path: string;
  readonly message: string;
}

/** How deep arrays and objects may nest. */
export const MAX_JSON_DEPTH = 64;

/** How many issues are listed; one is enough to refuse. */
export const MAX_JSON_ISSUES = 20;

/** One more step of a JSON pointer (RFC 6901). */
export function pointerStep(path: string, key: string | number): string {
  const text = typeof key === "number" ? String(key) : key.replaceAll("~", "~0").replaceAll("/", "~1");
  return `${path}/${text}`;
}
