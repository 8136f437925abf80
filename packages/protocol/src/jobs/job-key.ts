import { toBase64Url } from "../bytes/base64url.ts";
import { transcript } from "../bytes/transcript.ts";
import { hasLoneSurrogate } from "../bytes/utf8.ts";
import type { JsonIssue } from "../json/issue.ts";
import type { Port } from "../port/port.ts";

type Segment = string | number | boolean;

/** A job's key: its hash, which names it everywhere, and its segments as JSON text, for people. */
export interface JobKey {
  readonly hash: string;
  readonly label: string;
}

export type JobKeyReading =
  | { readonly ok: true; readonly key: JobKey }
  | { readonly ok: false; readonly issues: readonly JsonIssue[] };

const LABEL = "trellis.job-key.v1";

/**
 * The key of a payload: each segment is a JSON pointer into it (`"/siteId"`) or a literal word. The hash covers the
 * type of each value, so that `1` and `"1"` differ, and its length, so that no separator can collide.
 */
export function jobKey(port: Port, segments: readonly string[], payload: unknown): JobKeyReading {
  const values: Segment[] = [];
  const issues: JsonIssue[] = [];
  for (const segment of segments) {
    const value = segment.startsWith("/") ? resolve(payload, segment) : segment;
    if (isSegment(value)) values.push(value);
    else
      issues.push({
        path: segment,
        message: "must be text, a finite number or a boolean: it is a job's key",
      });
  }
  if (issues.length > 0) return { ok: false, issues };
  const fields = values.map((value) => `${typeof value}:${String(value)}`);
  const hash = toBase64Url(port.sha256(transcript(LABEL, ...fields)));
  return { ok: true, key: { hash, label: JSON.stringify(values) } };
}

function isSegment(value: unknown): value is Segment {
  if (typeof value === "string") return !hasLoneSurrogate(value);
  return typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value));
}

/** RFC 6901; `undefined` where the pointer leads nowhere. */
function resolve(payload: unknown, pointer: string): unknown {
  let value = payload;
  for (const step of pointer.slice(1).split("/")) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}

/** A job's id that follows from something else: a submission, a schedule's slot, a parent's step. */
export function derivedJobId(port: Port, kind: string, parts: readonly string[]): string {
  return toBase64Url(port.sha256(transcript(`trellis.job-id.${kind}.v1`, ...parts))).slice(0, 32);
}
