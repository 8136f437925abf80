import { type NatsConnection } from "@nats-io/transport-node";
import {
  AUTHORIZATION,
  type Authorization,
  authorizationDigest,
  fromBase64Url,
  type Grants,
  grantsDigest,
  type IssuerSet,
  inboxPrefix,
  keyId,
  newId,
  signStatement,
  toBase64Url,
} from "@trellis/protocol";
import { Broker } from "../connect/broker.ts";
import { type ConnectionKeys } from "../connect/connection-keys.ts";
import { DirectGet } from "../connect/direct-get.ts";
import { Inbox } from "../connect/inbox.ts";
import type { LinkListener } from "../connect/link.ts";
import { Revocations } from "../connect/revocations.ts";
import { ServerClock } from "../connect/server-clock.ts";
import type { Session } from "../connect/session.ts";
import { BrokerRequests } from "../jetstream/broker-requests.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { TimerWheel } from "../lifecycle/timer-wheel.ts";
import type { Logger } from "../logging/logger.ts";
import { silentLogger } from "../logging/logger.ts";
import { platform as nodePlatform } from "../platform/node/platform.ts";
import { nodePort as port } from "../platform/node/port.ts";

/** A connection as the control plane would have authorised it, on a server without one. */
export class EventLink {
  readonly platform = nodePlatform;
  readonly clock = new ServerClock(systemClock);
  readonly wheel = new TimerWheel();
  readonly revocations = new Revocations();
  readonly log: Logger;
  readonly keys: ConnectionKeys;
  readonly nats: NatsConnection;
  readonly broker: Broker;
  readonly answers: Inbox;
  readonly directGet: DirectGet;
  readonly requests: BrokerRequests;
  session: Session;
  isClosed = false;
  unavailableBecause: string | undefined;
  readonly #listeners = new Set<LinkListener>();

  constructor(
    nats: NatsConnection,
    input: { keys: ConnectionKeys; session: Session; log?: Logger | undefined },
  ) {
    this.nats = nats;
    this.keys = input.keys;
    this.session = input.session;
    this.log = input.log ?? silentLogger;
    this.broker = new Broker(
      nats,
      {
        onDown: () => this.#tell((listener) => listener.onDown?.()),
        onDialing: () => {},
        onRefused: () => {},
        onUp: () => this.#tell((listener) => listener.onUp?.()),
        onClosed: () => {},
      },
      this.log,
    );
    this.answers = new Inbox(port, input.session.connection, "j");
    this.answers.listen(this.broker, () => {});
    this.directGet = new DirectGet(this.broker, this.answers);
    this.requests = new BrokerRequests(this);
  }

  listen(listener: LinkListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#tell((listener) => listener.onClosed?.("stopped"));
    this.wheel.stop();
    await this.broker.close();
  }

  #tell(call: (listener: LinkListener) => void): void {
    for (const listener of [...this.#listeners]) call(listener);
  }
}

const issuerKey = port.ed25519.keyPair(new Uint8Array(32).fill(3));
const issuer = keyId(port, issuerKey.publicKey);
const issuers: IssuerSet = {
  rootFingerprint: "test",
  sequence: 1,
  issuedAt: 0,
  issuers: new Map([
    [issuer, { id: issuer, publicKey: issuerKey.publicKey, notBefore: 0, expiresAt: 8_000_000_000_000 }],
  ]),
};

export interface LinkOptions {
  readonly servers?: string;
  /** APIs whose events it may publish. */
  readonly owns?: readonly { readonly id: string; readonly events: object }[];
  readonly log?: Logger;
  readonly changes?: Partial<Authorization>;
  readonly user?: string;
}

/** Issues an authorization and keeps it where it is looked up. */
export function authorize(
  store: Map<string, string>,
  input: LinkOptions & { readonly deployment: string; readonly keys: ConnectionKeys },
): Session {
  const { deployment, keys, ...options } = input;
  const now = systemClock.now();
  const connection = newId(port, now);
  const none = { rpc: [], feeds: [], operations: [], consumes: [] };
  const grants: Grants = {
    version: 1,
    calls: (options.owns ?? []).map(({ id, events }) => ({
      ...none,
      api: id,
      deployment,
      publishes: Object.keys(events),
    })),
    capabilities: [],
  };
  const authorization: Authorization = {
    version: 1,
    issuer,
    principal: { kind: "service", id: deployment },
    identity: keyId(port, keys.identity.publicKey),
    participant: { id: deployment, digest: toBase64Url(new Uint8Array(32)) },
    deployment,
    instance: "i1",
    connection,
    login: null,
    sessionKey: toBase64Url(keys.session.publicKey),
    exchangeKey: toBase64Url(keys.exchange.publicKey),
    inbox: inboxPrefix(connection),
    grants: grantsDigest(port, grants),
    policy: toBase64Url(new Uint8Array(32)),
    notBefore: now - 1_000,
    expiresAt: now + 3_600_000,
    ...options.changes,
  };
  const signed = signStatement(port, {
    label: AUTHORIZATION.label,
    payload: authorization,
    key: issuerKey,
  });
  const digestText = authorizationDigest(port, signed.payload);
  store.set(`ctl.get.authorization.${digestText}`, JSON.stringify(signed));
  store.set(`ctl.get.grants.${authorization.grants}`, JSON.stringify(grants));
  return sessionOf({ authorization, digestText, grants });
}

function sessionOf(input: { authorization: Authorization; digestText: string; grants: Grants }): Session {
  const { authorization, digestText, grants } = input;
  const { connection, deployment, notBefore, expiresAt } = authorization;
  return {
    connection,
    assignment: { deployment, instance: "i1", name: deployment },
    participant: authorization.participant,
    authorization,
    digest: fromBase64Url(digestText) ?? new Uint8Array(),
    digestText,
    grants,
    issuers,
    bindings: new Map(),
    unbound: new Map(),
    routeKeys: new Map(),
    servers: [],
    resources: {
      version: 1,
      issuer,
      deployment,
      kv: {},
      store: {},
      consumers: {},
      issuedAt: notBefore,
      expiresAt,
    },
  };
}
