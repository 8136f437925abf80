import { fromBase64Url, toBase64Url } from "../bytes/base64url.ts";
import { hasLoneSurrogate, utf8Bytes, utf8Text } from "../bytes/utf8.ts";

const PLAIN = /^[A-Za-z0-9-]+$/;
const TOKEN = /^[A-Za-z0-9_-]{1,256}$/;
const API = /^[a-z][a-z0-9-]*(?:\.[a-z][a-z0-9-]*)+@v[1-9][0-9]*$/;
const API_TOKEN = /^[a-z][a-z0-9-]*(?:_[a-z][a-z0-9-]*)+@v[1-9][0-9]*$/;
const ACTION = /^[A-Za-z][A-Za-z0-9]*(?:\.[A-Za-z][A-Za-z0-9]*)*$/;
const ACTION_TOKEN = /^[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z][A-Za-z0-9]*)*$/;

/** Whether the text is one subject token as it stands: an id, a digest, a deployment. At most 256 characters. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** The subject token of an API id: `acme.orders@v1` is `acme_orders@v1`. Ids never hold `_`, so it reverses. */
export function apiToken(id: string): string {
  if (!API.test(id)) throw new TypeError(`"${id}" is not an API id.`);
  return id.replaceAll(".", "_");
}

/** The API id of a subject token; `undefined` when it is none. */
export function apiOfToken(token: string): string | undefined {
  return API_TOKEN.test(token) ? token.replaceAll("_", ".") : undefined;
}

/**
 * The subject token of an action's dotted name: `Order.Placed` is `Order_Placed`, one token, so that a parameter
 * can never look like a longer name.
 */
export function actionToken(name: string): string {
  if (!ACTION.test(name)) throw new TypeError(`"${name}" is not an action name.`);
  return name.replaceAll(".", "_");
}

/** The action name of a subject token; `undefined` when it is none. */
export function actionOfToken(token: string): string | undefined {
  return ACTION_TOKEN.test(token) ? token.replaceAll("_", ".") : undefined;
}

/** Whether {@link encodeToken} takes the text: all text but that with a lone surrogate, which has no UTF-8 form. */
export function isEncodable(text: string): boolean {
  return PLAIN.test(text) || !hasLoneSurrogate(text);
}

/**
 * One subject token for any text: the text itself when it is `[A-Za-z0-9-]+`, else `=` and the base64url of its
 * UTF-8. No text can add a dot, a wildcard, a space or a line break to a subject, and two texts never share a
 * token. Throws a `TypeError` for a lone surrogate: ask {@link isEncodable} first for text of a user.
 */
export function encodeToken(text: string): string {
  if (PLAIN.test(text)) return text;
  if (hasLoneSurrogate(text)) throw new TypeError("The text has a lone surrogate: it has no UTF-8 form.");
  return `=${toBase64Url(utf8Bytes(text))}`;
}

/** The text of a token; `undefined` unless the token is exactly what {@link encodeToken} gives for some text. */
export function decodeToken(token: string): string | undefined {
  if (PLAIN.test(token)) return token;
  if (!token.startsWith("=")) return undefined;
  const bytes = fromBase64Url(token.slice(1));
  const text = bytes === undefined ? undefined : utf8Text(bytes);
  return text === undefined || PLAIN.test(text) ? undefined : text;
}

/** A token that stays readable when it can: ids and digests as they stand, anything else encoded. Reversible. */
export function idToken(text: string): string {
  return isToken(text) ? text : encodeToken(text);
}

/** The token itself; throws a `TypeError` that names the place when it could change a subject. */
export function requireToken(text: string, place: string): string {
  if (!isToken(text)) throw new TypeError(`The ${place} of a subject must be one plain token.`);
  return text;
}
