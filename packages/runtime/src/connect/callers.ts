import { compileSchema } from "@trellis/contract";
import {
  AUTHORIZATION,
  authorizationDigest,
  authorizationGetSubject,
  decodeJsonBytes,
  type Grants,
  GrantsSchema,
  grantsDigest,
  grantsGetSubject,
  type IssuerSet,
  type Port,
  verifyStatement,
} from "@trellis/protocol";
import type { Logger } from "../logging/logger.ts";
import { CallerSession } from "./caller-session.ts";
import type { DirectGet } from "./direct-get.ts";
import { LookUpPool } from "./look-up-pool.ts";
import { readSigned } from "./read-signed.ts";
import type { Revocations } from "./revocations.ts";
import type { ServerClock } from "./server-clock.ts";

export interface CallersOptions {
  readonly port: Port;
  readonly directGet: DirectGet;
  readonly clock: ServerClock;
  readonly revocations: Revocations;
  readonly log: Logger;
  issuers(): IssuerSet;
}

/** Sessions kept at the most; beyond it the longest idle ones go. */
const maxSessions = 20_000;
/** A session that was idle for longer than a frame may be old can be forgotten without opening a replay. */
const idleMs = 150_000;
/** How long an unknown digest stays unknown without a look. */
const negativeMs = 2_000;
const maxNegative = 10_000;
const maxGrants = 2_000;

/**
 * The provider's cache of its callers' authorizations.
 *
 * Invariants:
 * C1. A session exists only for an authorization whose text hashes to the digest, that an issuer signed and
 *     whose grants hash to the digest that it names.
 * C2. Look-ups of unknown digests are bounded in number, shared among senders and remembered: garbage cannot make the
 *     provider read without end, nor keep those out who have not called before.
 * C3. A session is not forgotten while a frame of it could still be young enough to be replayed.
 */
export class Callers {
  readonly #options: CallersOptions;
  readonly #sessions = new Map<string, CallerSession>();
  readonly #pool = new LookUpPool();
  readonly #lookups = new Map<string, Promise<CallerSession | undefined>>();
  readonly #unknown = new Map<string, number>();
  readonly #grants = new Map<string, Grants>();

  constructor(options: CallersOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** The session of a digest, if it is known already. */
  get(digest: string): CallerSession | undefined {
    const session = this.#sessions.get(digest);
    if (session !== undefined) session.usedAt = this.#options.clock.monotonic();
    return session;
  }

  /**
   * Looks a digest up in the platform's store. `undefined`: there is no such authorization, or there are too many
   * look-ups, of this sender or at all. The sender is a claim, as good as the reply subject that it is read from.
   */
  load(digest: string, sender: string): Promise<CallerSession | undefined> {
    const pending = this.#lookups.get(digest);
    if (pending !== undefined) return pending;
    const now = this.#options.clock.monotonic();
    const unknownSince = this.#unknown.get(digest);
    if (unknownSince !== undefined && now - unknownSince < negativeMs) return Promise.resolve(undefined);
    const lookup = this.#pool
      .run(sender, () => this.#load(digest))
      .finally(() => this.#lookups.delete(digest));
    this.#lookups.set(digest, lookup);
    return lookup;
  }

  /** Marks the sessions that a new revocation hits, and returns them. */
  applyRevocations(): CallerSession[] {
    const hit: CallerSession[] = [];
    for (const session of this.#sessions.values()) {
      if (session.revoked || !this.#options.revocations.covers(session.authorization)) continue;
      session.revoked = true;
      hit.push(session);
    }
    return hit;
  }

  async #load(digest: string): Promise<CallerSession | undefined> {
    let session: CallerSession | undefined;
    try {
      session = await this.#fetch(digest);
    } catch (error) {
      this.#options.log.warn({ err: error }, "Could not look up a caller's authorization");
      return undefined; // not remembered as unknown: the store failed, not the caller
    }
    if (session === undefined) {
      if (this.#unknown.size >= maxNegative) this.#unknown.clear();
      this.#unknown.set(digest, this.#options.clock.monotonic());
      return undefined;
    }
    this.#unknown.delete(digest);
    session.usedAt = this.#options.clock.monotonic();
    session.revoked = this.#options.revocations.covers(session.authorization);
    this.#sessions.set(digest, session);
    if (this.#sessions.size > maxSessions) this.#forgetIdle();
    return session;
  }

  async #fetch(digest: string): Promise<CallerSession | undefined> {
    const { port, directGet, clock, issuers } = this.#options;
    const message = await directGet.last(authorizationGetSubject(digest));
    const signed = message === undefined ? undefined : readSigned(port, message.data);
    if (signed === undefined || authorizationDigest(port, signed.payload) !== digest) return undefined;
    const verified = verifyStatement(port, {
      ...AUTHORIZATION,
      signed,
      issuers: issuers(),
      now: clock.now(),
    });
    if (verified.isErr()) return undefined;
    const grants = await this.#loadGrants(verified.value.grants);
    if (grants === undefined) return undefined;
    return new CallerSession(port, { authorization: verified.value, digestText: digest, grants });
  }

  async #loadGrants(digest: string): Promise<Grants | undefined> {
    const known = this.#grants.get(digest);
    if (known !== undefined) return known;
    const message = await this.#options.directGet.last(grantsGetSubject(digest));
    if (message === undefined) return undefined;
    const grants = readGrants(this.#options.port, message.data);
    if (grants === undefined || grantsDigest(this.#options.port, grants) !== digest) return undefined;
    if (this.#grants.size >= maxGrants) this.#grants.clear();
    this.#grants.set(digest, grants);
    return grants;
  }

  #forgetIdle(): void {
    const before = this.#options.clock.monotonic() - idleMs;
    for (const [digest, session] of this.#sessions) {
      if (session.usedAt < before) this.#sessions.delete(digest);
    }
  }
}

function readGrants(port: Port, data: Uint8Array): Grants | undefined {
  const parsed = decodeJsonBytes(port, data);
  if (!parsed.ok || compileSchema(GrantsSchema).issues(parsed.value) !== undefined) return undefined;
  return parsed.value as Grants;
}
