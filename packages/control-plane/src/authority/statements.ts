import {
  API_BINDING,
  AUTHORIZATION,
  CONNECTION_END,
  ISSUERS_LABEL,
  type Port,
  RESOURCES,
  REVOCATION,
  type REVOCATION_SUBJECTS,
  ROUTE_NOTICE,
  type Signed,
  signStatement,
  toBase64Url,
} from "@trellis/protocol";
import type { Clock } from "@trellis/runtime/node";
import type { KeyRing } from "../identity/key-ring.ts";
import type { BoundResources } from "../resources/resources.ts";
import type { DeploymentRow } from "../storage/deployments.ts";

/** What a revocation is about. */
export interface RevocationSubject {
  kind: (typeof REVOCATION_SUBJECTS)[number];
  id: string;
}

/** A deployment's present and, in an overlap, its previous public route key. */
export interface RouteKeys {
  epoch: number;
  routeKey: string;
  previous: { epoch: number; routeKey: string; until: number } | null;
}

/** The facts of an authorization; issuer and version are added when it is signed. */
export interface AuthorizationFacts {
  principal: { kind: "service" | "app" | "platform"; id: string };
  identity: string;
  participant: { id: string; digest: string };
  deployment: string;
  instance: string;
  connection: string;
  login: string | null;
  sessionKey: string;
  exchangeKey: string;
  inbox: string;
  grants: string;
  policy: string;
  notBefore: number;
  expiresAt: number;
}

/** Signs everything that the control plane states, always with the issuer that is valid now. */
export class Statements {
  readonly #port: Port;
  readonly #keys: KeyRing;
  readonly #clock: Clock;
  #issuers: Signed | undefined;

  constructor(deps: { port: Port; keys: KeyRing; clock: Clock }) {
    this.#port = deps.port;
    this.#keys = deps.keys;
    this.#clock = deps.clock;
  }

  /** The list of issuers, signed by the root. */
  issuers(): Signed {
    if (this.#issuers !== undefined) return this.#issuers;
    const { issuers, root } = this.#keys;
    const payload = {
      version: 1,
      root: toBase64Url(root.publicKey),
      sequence: issuers.length,
      issuedAt: this.#clock.now(),
      issuers,
    };
    this.#issuers = signStatement(this.#port, { label: ISSUERS_LABEL, payload, key: root });
    return this.#issuers;
  }

  authorization(facts: AuthorizationFacts): Signed {
    return this.#sign(AUTHORIZATION.label, { ...facts });
  }

  /** Binds an API that a deployment uses to its provider and the provider's route key. */
  binding(input: {
    consumer: string;
    api: string;
    provider: DeploymentRow;
    issuedAt: number;
    expiresAt: number;
  }): Signed {
    const { consumer, api, provider, issuedAt, expiresAt } = input;
    const route = this.routeKeys(provider, issuedAt);
    return this.#sign(API_BINDING.label, {
      consumer,
      api,
      deployment: provider.id,
      ...route,
      issuedAt,
      expiresAt,
    });
  }

  /** Says what stands behind the aliases of a deployment. */
  resources(input: {
    deployment: string;
    bound: BoundResources;
    issuedAt: number;
    expiresAt: number;
  }): Signed {
    const { deployment, bound, issuedAt, expiresAt } = input;
    return this.#sign(RESOURCES.label, { deployment, ...bound, issuedAt, expiresAt });
  }

  /** States a deployment's present route key to everybody. */
  route(deployment: DeploymentRow): Signed {
    const issuedAt = this.#clock.now();
    const route = this.routeKeys(deployment, issuedAt);
    return this.#sign(ROUTE_NOTICE.label, { deployment: deployment.id, ...route, issuedAt });
  }

  revocation(subject: RevocationSubject, at: number, reason: string): Signed {
    return this.#sign(REVOCATION.label, { subject, at, reason });
  }

  connectionEnd(end: {
    connection: string;
    deployment: string;
    instance: string;
    at: number;
    reason: string;
  }): Signed {
    return this.#sign(CONNECTION_END.label, end);
  }

  /** The public route keys of a deployment at a moment. */
  routeKeys(deployment: DeploymentRow, now: number): RouteKeys {
    const key = (epoch: number) => toBase64Url(this.#keys.routeKey(deployment.id, epoch).publicKey);
    const { epoch, previousEpoch, previousUntil } = deployment;
    const overlaps = previousEpoch !== null && previousUntil !== null && previousUntil > now;
    return {
      epoch,
      routeKey: key(epoch),
      previous: overlaps
        ? { epoch: previousEpoch, routeKey: key(previousEpoch), until: previousUntil }
        : null,
    };
  }

  #sign(label: string, body: Readonly<Record<string, unknown>>): Signed {
    const { issuer, key } = this.#keys.issuerAt(this.#clock.now());
    return signStatement(this.#port, { label, payload: { version: 1, issuer: issuer.id, ...body }, key });
  }
}
