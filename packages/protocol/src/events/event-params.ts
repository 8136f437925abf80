import { type JsonIssue, pointerStep } from "../json/issue.ts";
import { eventSubject } from "../subjects/subject.ts";
import { actionOfToken, apiOfToken, decodeToken, isEncodable } from "../subjects/token.ts";

/** Longest text of one parameter, in UTF-16 code units: with all parameters a subject stays far below a line of NATS. */
export const MAX_EVENT_PARAM = 1_024;

/** Longest subject: what is beyond it would not fit the line on which NATS reads it. */
const MAX_SUBJECT = 16_384;

export type ParamText =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly message: string };

/**
 * The text of a parameter's value, the same for publishers and for those who filter. Texts stand for themselves, also
 * the empty one; `false` is `false`; numbers are written as RFC 8785 writes them, so -0 is `0`. Refused: what no two
 * sides would be sure to write alike (numbers that are not finite, whole numbers beyond 2^53 - 1), and whatever is
 * neither text nor number nor boolean.
 */
export function eventParamText(value: unknown): ParamText {
  switch (typeof value) {
    case "string":
      if (value.length > MAX_EVENT_PARAM) return refuse(`is longer than ${MAX_EVENT_PARAM} characters`);
      return isEncodable(value) ? { ok: true, text: value } : refuse("has a lone surrogate");
    case "boolean":
      return { ok: true, text: String(value) };
    case "number":
      if (!Number.isFinite(value)) return refuse("is not a finite number");
      if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
        return refuse("is a whole number that JSON readers may round: beyond 2^53 - 1");
      }
      return { ok: true, text: String(value) };
    default:
      return refuse(`must be a text, a number or a boolean: it is a subject parameter`);
  }
}

function refuse(message: string): ParamText {
  return { ok: false, message };
}

export type EventPlace =
  | { readonly ok: true; readonly subject: string; readonly params: readonly string[] }
  | { readonly ok: false; readonly issues: readonly JsonIssue[] };

/** Where an event with this payload goes. Refuses with a pointer to each member that cannot be a parameter. */
export function eventPlace(
  event: { readonly api: string; readonly name: string; readonly params: readonly string[] },
  payload: unknown,
): EventPlace {
  const texts: string[] = [];
  const issues: JsonIssue[] = [];
  for (const param of event.params) {
    const value = memberOf(payload, param);
    const read: ParamText =
      value === undefined ? refuse("is missing: it is a subject parameter") : eventParamText(value);
    if (read.ok) texts.push(read.text);
    else issues.push({ path: pointerStep("", param), message: read.message });
  }
  if (issues.length > 0) return { ok: false, issues };
  const subject = eventSubject({ api: event.api, action: event.name, params: texts });
  if (subject.length > MAX_SUBJECT) {
    return { ok: false, issues: [{ path: "", message: "its parameters make too long a subject" }] };
  }
  return { ok: true, subject, params: texts };
}

function memberOf(payload: unknown, name: string): unknown {
  if (typeof payload !== "object" || payload === null || !Object.hasOwn(payload, name)) return undefined;
  return (payload as Readonly<Record<string, unknown>>)[name];
}

/** What an event's subject says. */
export interface EventAddress {
  readonly api: string;
  readonly action: string;
  /** Texts of the parameters, decoded. */
  readonly params: readonly string[];
}

/** API and name by what subjects begin with: there are as many as events that this process hears of. */
const heads = new Map<string, Pick<EventAddress, "api" | "action">>();
const maxHeads = 1_000;

/** Reads a subject back; `undefined` unless it is exactly what {@link eventSubject} gives for some event. */
export function readEventSubject(subject: string): EventAddress | undefined {
  const end = headLength(subject);
  const head = readHead(subject.slice(0, end));
  if (head === undefined || end === subject.length) return head && { ...head, params: none };
  const params: string[] = [];
  for (const token of subject.slice(end + 1).split(".")) {
    const text = decodeToken(token);
    if (text === undefined) return undefined;
    params.push(text);
  }
  return { ...head, params };
}

const none: readonly string[] = [];

/** Up to the fourth dot, or all of it. */
function headLength(subject: string): number {
  let at = -1;
  for (let dots = 0; dots < 4; dots += 1) {
    at = subject.indexOf(".", at + 1);
    if (at < 0) return subject.length;
  }
  return at;
}

function readHead(text: string): Pick<EventAddress, "api" | "action"> | undefined {
  const known = heads.get(text);
  if (known !== undefined) return known;
  const [surface, version, apiPart = "", actionPart = ""] = text.split(".");
  if (surface !== "events" || version !== "v1") return undefined;
  const api = apiOfToken(apiPart);
  const action = actionOfToken(actionPart);
  if (api === undefined || action === undefined) return undefined;
  if (heads.size >= maxHeads) heads.clear();
  heads.set(text, { api, action });
  return { api, action };
}
