import { randomInt } from "node:crypto";
import type { Msg, NatsConnection } from "@nats-io/nats-core";
import { userName } from "@trellis/protocol";
import type { Clock } from "@trellis/runtime/node";
import {
  addConnection,
  type Permissions,
  sharedPermissions,
  storedPolicy,
  type TransportPolicy,
} from "../authority/policy.ts";
import { LimitedLog } from "../config/limited-log.ts";
import type { Log } from "../config/log.ts";
import type { CalloutKeys } from "../identity/key-ring.ts";
import { findAuthorization, readContent } from "../storage/authorizations.ts";
import type { Storage } from "../storage/storage.ts";
import { type CalloutRefusal, type CalloutSession, checkPossession, checkSession } from "./decision.ts";
import { signJwt } from "./jwt.ts";
import { type CalloutRequest, readCalloutRequest } from "./request.ts";
import { SealedBox } from "./sealed-box.ts";

const subject = "$SYS.REQ.USER.AUTH";
const queue = "trellis-callout";
const dayMs = 86_400_000;
const policyLimit = 4096;

interface CompiledPolicy {
  policy: TransportPolicy;
  shared: Permissions;
}

export interface CalloutOptions {
  nats: NatsConnection;
  storage: Storage;
  keys: CalloutKeys;
  clock: Clock;
  log: Log;
}

/**
 * Answers the broker's question "may this client connect, and what may it do".
 *
 * Invariants: 1. only a question that is sealed for us and signed by the asking server is answered; 2. a
 * client connects only with a proof of its session key, made for this very connection attempt; 3. the allow
 * lists of an answer are exact and never empty; 4. nothing of a client's credentials is logged.
 */
export class CalloutResponder {
  readonly #options: CalloutOptions;
  readonly #box: SealedBox;
  readonly #refusals: LimitedLog;
  readonly #policies = new Map<string, CompiledPolicy>();
  #pending = 0;

  constructor(options: CalloutOptions) {
    this.#options = options;
    this.#box = new SealedBox(options.keys.exchangeSecret);
    this.#refusals = new LimitedLog(options.log, options.clock);
  }

  /** Begins to answer; returns how to end it. Several control planes share the work through a queue group. */
  start(): () => void {
    const subscription = this.#options.nats.subscribe(subject, {
      queue,
      callback: (failure, message) => {
        if (failure === null) void this.#serve(message);
      },
    });
    return () => subscription.unsubscribe();
  }

  /** Questions that are being answered now. */
  get pending(): number {
    return this.#pending;
  }

  async #serve(message: Msg): Promise<void> {
    const serverKey = message.headers?.get("Nats-Server-Xkey");
    if (serverKey === undefined || serverKey === "") return;
    this.#pending++;
    try {
      const opened = this.#box.open(message.data, serverKey);
      if (opened === undefined) return;
      const request = readCalloutRequest(Buffer.from(opened).toString(), this.#options.clock.now());
      if (request === undefined) return;
      const answer = this.#box.seal(Buffer.from(await this.#answer(request)), serverKey);
      if (answer !== undefined) message.respond(answer);
    } catch (error) {
      this.#options.log.error(
        { code: "trellis.callout.failed", error },
        "A connection question was not answered.",
      );
    } finally {
      this.#pending--;
    }
  }

  async #answer(request: CalloutRequest): Promise<string> {
    const decision = await this.#decide(request);
    const { keys, clock } = this.#options;
    const refused = typeof decision === "string";
    if (refused) this.#refusals.warn(`trellis.callout.${decision}`, "A connection was refused.");
    const outcome = refused ? { error: decision } : { jwt: decision.jwt };
    return signJwt({
      claims: {
        sub: request.userNkey,
        aud: request.serverId,
        nats: { ...outcome, type: "authorization_response", version: 2 },
      },
      issuer: keys.issuer,
      key: keys.issuerKey,
      now: clock.now(),
    });
  }

  async #decide(request: CalloutRequest): Promise<{ jwt: string } | CalloutRefusal> {
    const presented = checkPossession(request);
    if (typeof presented === "string") return presented;
    try {
      const row = await findAuthorization(this.#options.storage.queries, presented.digest);
      const known = row === undefined ? undefined : { ...row, connection: row.connectionId };
      const session = checkSession(presented, known, this.#options.clock.now());
      if (typeof session === "string") return session;
      return { jwt: await this.#userJwt(request, session) };
    } catch (error) {
      this.#options.log.error(
        { code: "trellis.callout.internal", error },
        "A connection could not be checked.",
      );
      return "internal";
    }
  }

  async #userJwt(request: CalloutRequest, session: CalloutSession): Promise<string> {
    const { keys, clock } = this.#options;
    const { policy, shared } = await this.#policy(session.policyDigest);
    const { pub, sub } = addConnection(shared, policy, session.connection);
    if (pub.length === 0 || sub.length === 0) throw new Error("An allow list was empty.");
    // Jittered, so that the connections of one start do not all come back in one moment.
    const expiresAt = clock.now() + dayMs - randomInt(dayMs / 10);
    return signJwt({
      claims: {
        name: userName(session.digest, session.connection),
        sub: request.userNkey,
        aud: "APP",
        exp: Math.floor(expiresAt / 1000),
        nats: {
          pub: { allow: pub },
          sub: { allow: sub },
          subs: -1,
          data: -1,
          payload: -1,
          type: "user",
          version: 2,
        },
      },
      issuer: keys.issuer,
      key: keys.issuerKey,
      now: clock.now(),
    });
  }

  /** Policies are content-addressed: what a digest compiles to never changes. */
  async #policy(digest: string): Promise<CompiledPolicy> {
    const known = this.#policies.get(digest);
    if (known !== undefined) return known;
    const body = await readContent(this.#options.storage.queries, digest);
    if (body === undefined) throw new Error("An authorization names a policy that is not stored.");
    const policy = storedPolicy(body);
    const compiled = { policy, shared: sharedPermissions(policy) };
    if (this.#policies.size >= policyLimit) this.#policies.clear();
    this.#policies.set(digest, compiled);
    return compiled;
  }
}
