import {
  authorizationDigest,
  type BootstrapAnswer,
  type BootstrapRequest,
  fromBase64Url,
  inboxPrefix,
  keyId,
  type Port,
  type SealedRouteKey,
  type Signed,
  sealRouteKey,
  type Transports,
} from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import type { Clock } from "@trellis/runtime/node";
import { type ResolvedBindings, resolveBindings } from "../authority/binding.ts";
import type { Catalog } from "../authority/catalog.ts";
import { grantsOf, sealGrants } from "../authority/grants.ts";
import {
  type GrantedUses,
  grantedUses,
  isPlatformOwned,
  withListening,
} from "../authority/platform-access.ts";
import { comparePolicies, policyOf, sealPolicy, type TransportPolicy } from "../authority/policy.ts";
import type { Kicker } from "../authority/revoker.ts";
import type { Statements } from "../authority/statements.ts";
import type { Log } from "../config/log.ts";
import type { KeyRing } from "../identity/key-ring.ts";
import type { NoticePublisher } from "../notices/publisher.ts";
import { type BoundResources, blockingFailure } from "../resources/bound-resources.ts";
import {
  BrokerLimit,
  ForeignResource,
  type ResourceFailure,
  ResourcesFailed,
} from "../resources/resource-errors.ts";
import type { Resources } from "../resources/resources.ts";
import { impliedUses, isImplied } from "../state/state-use.ts";
import {
  type AuthorizationRow,
  insertAuthorization,
  revokeAuthorizations,
  saveContent,
} from "../storage/authorizations.ts";
import { type ConnectionRow, saveConnection } from "../storage/connections.ts";
import { chosenBindings, findDeployment } from "../storage/deployments.ts";
import { findPlatformGrants } from "../storage/grants.ts";
import { latestRevocation } from "../storage/revocations.ts";
import type { Storage } from "../storage/storage.ts";
import type { Admitted } from "./admission.ts";
import { type Continuity, continueConnection } from "./continuity.ts";
import { type Refusal, refusal } from "./refusal.ts";

export interface IssueDeps {
  port: Port;
  clock: Clock;
  keys: KeyRing;
  storage: Storage;
  catalog: Catalog;
  statements: Statements;
  resources: Resources;
  log: Log;
  notices: NoticePublisher;
  kicker: Kicker;
  /** Life of an authorization in ms. */
  lifeMs: number;
  /** Dev mode: whoever is let in may use the platform's own APIs; else they take a grant. */
  platformApisAreOpen: boolean;
  transports(): Transports;
  maxPayload(): number | undefined;
}

interface Draft {
  request: BootstrapRequest;
  admitted: Admitted;
  continuity: Continuity;
  bindings: ResolvedBindings;
  resources: BoundResources;
  policy: TransportPolicy;
  now: number;
}

/**
 * Issues an authorization to an admitted process and answers with all that it needs to connect.
 *
 * SQL is written first, then the stream: once a client holds the digest, both the callout and every provider
 * find it. A narrower policy than before revokes the older authorizations of the connection in the same
 * transaction and kicks its socket; an equal or wider one leaves them to end in their time.
 */
export async function issue(
  deps: IssueDeps,
  request: BootstrapRequest,
  admitted: Admitted,
): Promise<Result<BootstrapAnswer, Refusal>> {
  const now = deps.clock.now();
  const continuity = await continueConnection(deps, request, admitted);
  if (continuity.isErr()) return err(continuity.error);
  const bindings = await resolve(deps, admitted, continuity.value);
  const [ambiguous] = bindings.ambiguous;
  if (ambiguous !== undefined) {
    const hint = `${ambiguous.api} is provided by ${ambiguous.providers.join(", ")}: choose one for this deployment.`;
    return err(refusal("trellis.bootstrap.binding_ambiguous", { hint }));
  }
  const provisioned = await provision(deps, admitted);
  if (provisioned.isErr()) return err(provisioned.error);
  const { artifact, deployment } = admitted;
  const resources = provisioned.value;
  const policy = policyOf({ deployment: deployment.id, artifact, bindings, resources });
  return ok(
    await authorize(deps, {
      request,
      admitted,
      continuity: continuity.value,
      bindings,
      resources,
      policy,
      now,
    }),
  );
}

/**
 * Sees to it that the deployment has what its revision declares; gives what the process's own revision can use. What
 * cannot be had concerns only whom it keeps from working: a revision that asks too much takes nothing from the others.
 */
async function provision(deps: IssueDeps, admitted: Admitted): Promise<Result<BoundResources, Refusal>> {
  const { deployment, artifact } = admitted;
  const { participantId, participantDigest } = deployment;
  const present = await deps.catalog.artifact(deps.storage.queries, participantId, participantDigest);
  let failures: readonly ResourceFailure[] = [];
  try {
    if (present !== undefined) await deps.resources.ensure(deployment, present);
  } catch (error) {
    deps.log.warn({ code: "trellis.resources.not_ready", deployment: deployment.name, error }, notReady);
    if (!(error instanceof ResourcesFailed))
      return err(refusal("trellis.bootstrap.unavailable", { hint: notReady, retryAfterMs: 1_000 }));
    failures = error.failures;
  }
  const bound = await deps.resources.bindings(deployment, artifact, failures);
  const blocking = blockingFailure(artifact, bound, failures);
  return blocking === undefined ? ok(bound) : err(refusalOf(blocking));
}

function refusalOf({ error }: ResourceFailure): Refusal {
  if (error instanceof ForeignResource) {
    const hint = `"${error.resource}" exists on the broker and is not this deployment's; move it away.`;
    return refusal("trellis.bootstrap.resource_refused", { hint });
  }
  if (error instanceof BrokerLimit) {
    const hint = `The broker has no room for "${error.resource}": ${error.limit}. Raise JetStream's limits, or ask for less.`;
    return refusal("trellis.bootstrap.resource_refused", { hint });
  }
  return refusal("trellis.bootstrap.unavailable", { hint: notReady, retryAfterMs: 1_000 });
}

const notReady = "The broker did not make all resources of a contract; it will be tried again.";

async function resolve(
  deps: IssueDeps,
  admitted: Admitted,
  continuity: Continuity,
): Promise<ResolvedBindings> {
  const { queries } = deps.storage;
  const allowed = await usable(deps, admitted);
  const uses = withListening(admitted.artifact, allowed.uses);
  const refused = allowed.refused.filter(({ api }) => !uses.some((use) => use.api === api));
  if (uses.length === 0) return { bound: [], unbound: refused, ambiguous: [] };
  const current = new Map(continuity.before?.policy.used.map((use) => [use.api, use.deployment]));
  const chosen = await chosenBindings(queries, admitted.deployment.id);
  const providers = await deps.catalog.providers(queries);
  const resolved = resolveBindings({ uses, providers, chosen, current });
  return { ...resolved, unbound: [...resolved.unbound, ...refused] };
}

/** What of its contract's uses a deployment may have: the platform's own APIs are granted one by one, but for state. */
async function usable(deps: IssueDeps, { artifact, deployment }: Admitted): Promise<GrantedUses> {
  const uses = artifact.uses.filter((use) => !isImplied(use, artifact));
  const granted = await grantedOf(deps, uses, deployment.id);
  return { ...granted, uses: [...granted.uses, ...impliedUses(artifact)] };
}

async function grantedOf(
  deps: IssueDeps,
  uses: GrantedUses["uses"],
  deployment: string,
): Promise<GrantedUses> {
  if (deps.platformApisAreOpen || !uses.some((use) => isPlatformOwned(use.api))) return { uses, refused: [] };
  return grantedUses(uses, (await findPlatformGrants(deps.storage.queries, deployment)).rpc);
}

async function authorize(deps: IssueDeps, draft: Draft): Promise<BootstrapAnswer> {
  const { admitted, continuity, bindings, request, now } = draft;
  const grants = grantsOf({ deployment: admitted.deployment.id, artifact: admitted.artifact, bindings });
  const grantSet = sealGrants(grants);
  const policySet = sealPolicy(draft.policy);
  const signed = deps.statements.authorization({
    ...(await factsOf(deps, draft)),
    grants: grantSet.digest,
    policy: policySet.digest,
  });
  const digest = authorizationDigest(deps.port, signed.payload);
  const narrower =
    continuity.before !== undefined && comparePolicies(continuity.before.policy, draft.policy) === "narrower";
  await deps.storage.transact(async (tx) => {
    if (narrower) await revokeAuthorizations(tx, { column: "connectionId", id: continuity.connection }, now);
    await saveContent(tx, { ...grantSet, kind: "grants" });
    await saveContent(tx, { ...policySet, kind: "policy" });
    await insertAuthorization(tx, authorizationRow(deps, draft, { digest, signed, grantSet, policySet }));
    await saveConnection(tx, connectionRow(draft, digest));
  });
  await Promise.all([
    deps.notices.grants(grantSet.digest, grantSet.body),
    deps.notices.authorization(digest, signed, deps.lifeMs),
  ]);
  if (narrower) await deps.kicker.kick(continuity.connection);
  const maxPayload = deps.maxPayload();
  return {
    version: 1,
    connection: continuity.connection,
    serverTime: deps.clock.now(),
    assignment: {
      deployment: admitted.deployment.id,
      instance: admitted.instance.id,
      name: admitted.deployment.name,
    },
    participant: { id: admitted.deployment.participantId, digest: admitted.digest },
    authorization: signed,
    grants,
    issuers: deps.statements.issuers(),
    transports: deps.transports(),
    ...(maxPayload === undefined ? {} : { maxPayload }),
    bindings: await signBindings(deps, draft),
    unbound: bindings.unbound.map(({ api, reason }) => ({ api, reason })),
    route: sealRoutes(deps, { admitted, digest, exchangeKey: request.exchangeKey, now }),
    resources: deps.statements.resources({
      deployment: admitted.deployment.id,
      bound: draft.resources,
      issuedAt: now,
      expiresAt: now + deps.lifeMs,
    }),
  };
}

async function factsOf(deps: IssueDeps, { request, admitted, continuity, now }: Draft) {
  const { deployment, instance, artifact, digest, platform = false } = admitted;
  const identity = keyId(deps.port, keyBytes(request.identityKey));
  // Whatever was revoked is revoked up to an instant: what begins after it stands, were it in the same millisecond.
  const revokedAt = await latestRevocation(deps.storage.queries, [
    ["instance", instance.id],
    ["deployment", deployment.id],
    ["identity", identity],
  ]);
  return {
    principal: { kind: platform ? ("platform" as const) : artifact.kind, id: deployment.participantId },
    identity,
    participant: { id: deployment.participantId, digest },
    deployment: deployment.id,
    instance: instance.id,
    connection: continuity.connection,
    login: null,
    sessionKey: request.sessionKey,
    exchangeKey: request.exchangeKey,
    inbox: inboxPrefix(continuity.connection),
    notBefore: revokedAt === undefined ? now : Math.max(now, revokedAt + 1),
    expiresAt: now + deps.lifeMs,
  };
}

function authorizationRow(
  deps: IssueDeps,
  { admitted, continuity, request, now }: Draft,
  made: { digest: string; signed: Signed; grantSet: { digest: string }; policySet: { digest: string } },
): AuthorizationRow {
  return {
    digest: made.digest,
    connectionId: continuity.connection,
    instanceId: admitted.instance.id,
    deploymentId: admitted.deployment.id,
    sessionKey: request.sessionKey,
    payload: made.signed.payload,
    signature: made.signed.signature,
    grantsDigest: made.grantSet.digest,
    policyDigest: made.policySet.digest,
    issuedAt: now,
    expiresAt: now + deps.lifeMs,
    revokedAt: null,
  };
}

function connectionRow({ admitted, continuity, request, now }: Draft, digest: string): ConnectionRow {
  return {
    id: continuity.connection,
    instanceId: admitted.instance.id,
    deploymentId: admitted.deployment.id,
    participantId: admitted.deployment.participantId,
    participantDigest: admitted.digest,
    identityKey: request.identityKey,
    sessionKey: request.sessionKey,
    authorizationDigest: digest,
    state: "issued",
    serverId: null,
    cid: null,
    createdAt: now,
    updatedAt: now,
  };
}

async function signBindings(deps: IssueDeps, { admitted, bindings, now }: Draft): Promise<Signed[]> {
  const signed: Signed[] = [];
  // An API can be used twice under two names; it is bound once.
  const apis = new Map(bindings.bound.map(({ use, provider }) => [use.api, provider]));
  const consumer = admitted.deployment.id;
  for (const [api, provider] of apis) {
    const row = await findDeployment(deps.storage.queries, provider);
    if (row === undefined) continue;
    signed.push(
      deps.statements.binding({
        consumer,
        api,
        provider: row,
        issuedAt: now,
        expiresAt: now + deps.lifeMs,
      }),
    );
  }
  return signed;
}

/** The deployment's own route keys, for providers: the present one and, in an overlap, the one before. */
function sealRoutes(
  deps: IssueDeps,
  input: { admitted: Admitted; digest: string; exchangeKey: string; now: number },
): SealedRouteKey[] {
  const { admitted, digest, now } = input;
  const { deployment, artifact } = admitted;
  if (artifact.kind !== "service") return [];
  const { epoch, previous } = deps.statements.routeKeys(deployment, now);
  const exchangeKey = keyBytes(input.exchangeKey);
  return [epoch, ...(previous === null ? [] : [previous.epoch])].map((each) =>
    sealRouteKey(deps.port, {
      routeSecret: deps.keys.routeKey(deployment.id, each).secret,
      deployment: deployment.id,
      epoch: each,
      authorization: digest,
      exchangeKey,
    }),
  );
}

function keyBytes(text: string): Uint8Array {
  return fromBase64Url(text) ?? new Uint8Array();
}
