import { createHash, timingSafeEqual } from "node:crypto";

/** The headers that dev mode looks at. */
export interface Surroundings {
  host: string | undefined;
  origin: string | undefined;
  /** Names of all headers, lower case. */
  names: readonly string[];
}

/** What proxies leave behind, beside the many `x-forwarded-` headers. */
const proxyHeaders = new Set(["forwarded", "via", "x-real-ip"]);
const loopbackHosts = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * Dev mode trusts nothing but its own machine: says what gives a request away as not being local and direct.
 * A page of another origin, a name that was rebound to loopback and a proxy in front are all refused.
 */
export function foreignSurroundings(
  request: Surroundings,
  ownOrigins: readonly string[],
): string | undefined {
  const { host, origin, names } = request;
  if (host === undefined || !loopbackHosts.has(hostName(host)))
    return "The Host header is not a loopback name.";
  if (origin !== undefined && !ownOrigins.includes(origin))
    return "The request comes from a page of another origin.";
  const proxied = names.find((name) => proxyHeaders.has(name) || name.startsWith("x-forwarded-"));
  return proxied === undefined ? undefined : `The request went through a proxy (${proxied}).`;
}

/** Compares a bearer header with the dev token without telling by time how much of it is right. */
export function holdsDevToken(authorization: string | undefined, token: string): boolean {
  const match = /^Bearer ([\x21-\x7e]{1,256})$/i.exec(authorization ?? "");
  const given = match?.[1];
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}

/** What is stored of a dev token with the participants that were installed by it. */
export function tokenOwner(token: string): string {
  return createHash("sha256").update("trellis.dev-owner.v1\0").update(token).digest("base64url");
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function hostName(host: string): string {
  const bracket = host.startsWith("[") ? host.indexOf("]") + 1 : host.lastIndexOf(":");
  return (bracket > 0 ? host.slice(0, bracket) : host).toLowerCase();
}
