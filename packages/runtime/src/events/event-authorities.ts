import { compileSchema } from "@trellis/contract";
import {
  AUTHORIZATION,
  type Authorization,
  authorizationDigest,
  authorizationGetSubject,
  decodeJson,
  decodeJsonBytes,
  type EventPublisher,
  fromBase64Url,
  type Grants,
  GrantsSchema,
  grantsDigest,
  grantsGetSubject,
  type Port,
  verifyStatement,
} from "@trellis/protocol";
import type { Link } from "../connect/link.ts";
import { readSigned } from "../connect/read-signed.ts";

export type AuthorityLink = Pick<Link, "directGet" | "clock" | "session"> & {
  readonly platform: Pick<Link["platform"], "port">;
};

/** Who may have published an event. */
export interface Authority extends EventPublisher {
  readonly sessionKey: Uint8Array;
}

const maxKept = 10_000;
/** How long an unknown digest stays unknown without a look, ms. */
const unknownMs = 2_000;
const maxLookups = 64;

/** The look-up could not be made: it says nothing about the digest. */
export class LookupFailed extends Error {
  override readonly name = "LookupFailed";
}

/**
 * The authorizations of publishers, by digest. Unlike those of callers they count after their end: what an event
 * was published under is a question about the past.
 *
 * Invariants: as C1 and C2 of `Callers`, and: A1. Only what the platform signed by an issuer that was valid then is
 * kept. A2. A look-up that fails is not an answer: `get` rejects, and the event waits.
 */
export class EventAuthorities {
  readonly #link: AuthorityLink;
  readonly #kept = new Map<string, Authority>();
  readonly #grants = new Map<string, Grants>();
  readonly #unknown = new Map<string, number>();
  readonly #lookups = new Map<string, Promise<Authority | undefined>>();

  constructor(link: AuthorityLink) {
    this.#link = link;
  }

  /** The authority of a digest, if it is known already. */
  known(digest: string): Authority | undefined {
    return this.#kept.get(digest);
  }

  /** Looks a digest up. `undefined`: there is no such authorization. Rejects with `LookupFailed`. */
  load(digest: string): Promise<Authority | undefined> {
    const pending = this.#lookups.get(digest);
    if (pending !== undefined) return pending;
    const since = this.#unknown.get(digest);
    if (since !== undefined && this.#link.clock.monotonic() - since < unknownMs)
      return Promise.resolve(undefined);
    if (this.#lookups.size >= maxLookups)
      return Promise.reject(new LookupFailed("too many look-ups at a time"));
    const lookup = this.#load(digest).finally(() => this.#lookups.delete(digest));
    this.#lookups.set(digest, lookup);
    return lookup;
  }

  async #load(digest: string): Promise<Authority | undefined> {
    let found: Authority | undefined;
    try {
      found = await this.#fetch(digest);
    } catch (cause) {
      throw new LookupFailed("a publisher's authorization could not be looked up", { cause });
    }
    if (found === undefined) {
      if (this.#unknown.size >= maxKept) this.#unknown.clear();
      this.#unknown.set(digest, this.#link.clock.monotonic());
      return undefined;
    }
    this.#unknown.delete(digest);
    if (this.#kept.size >= maxKept) this.#forgetOldest();
    this.#kept.set(digest, found);
    return found;
  }

  async #fetch(digest: string): Promise<Authority | undefined> {
    const { directGet, platform } = this.#link;
    const { port } = platform;
    const message = await directGet.last(authorizationGetSubject(digest));
    const signed = message === undefined ? undefined : readSigned(port, message.data);
    if (signed === undefined || authorizationDigest(port, signed.payload) !== digest) return undefined;
    const { issuers } = this.#link.session;
    const verified = verifyStatement(port, {
      ...AUTHORIZATION,
      signed,
      issuers,
      now: beginningOf(signed.payload),
    });
    if (verified.isErr()) return undefined;
    const sessionKey = fromBase64Url(verified.value.sessionKey);
    const grants = await this.#loadGrants(verified.value.grants);
    return grants === undefined || sessionKey === undefined
      ? undefined
      : { authorization: verified.value, grants, sessionKey };
  }

  async #loadGrants(digest: string): Promise<Grants | undefined> {
    const known = this.#grants.get(digest);
    if (known !== undefined) return known;
    const message = await this.#link.directGet.last(grantsGetSubject(digest));
    const grants = message === undefined ? undefined : readGrants(this.#link.platform.port, message.data);
    if (grants === undefined || grantsDigest(this.#link.platform.port, grants) !== digest) return undefined;
    if (this.#grants.size >= maxKept) this.#grants.clear();
    this.#grants.set(digest, grants);
    return grants;
  }

  #forgetOldest(): void {
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined) this.#kept.delete(oldest);
  }
}

/**
 * When the authorization says that it began: the issuer must have been valid then, and need not be any more. A
 * signature is checked over this very text, so that nobody but the issuer can have written it.
 */
function beginningOf(payload: string): number {
  const parsed = decodeJson(payload);
  const notBefore = parsed.ok ? (parsed.value as Partial<Authorization> | null)?.notBefore : undefined;
  return typeof notBefore === "number" ? notBefore : Number.NaN;
}

function readGrants(port: Port, data: Uint8Array): Grants | undefined {
  const parsed = decodeJsonBytes(port, data);
  if (!parsed.ok || compileSchema(GrantsSchema).issues(parsed.value) !== undefined) return undefined;
  return parsed.value as Grants;
}
