import {
  API_BINDING,
  type ApiBinding,
  AUTHORIZATION,
  type Authorization,
  authorizationDigest,
  type BootstrapAnswer,
  checkAuthorization,
  type ExchangeKey,
  fromBase64Url,
  grantsDigest,
  type IssuerSet,
  keyId,
  openRouteKey,
  type Port,
  RESOURCES,
  type ResourceBindings,
  TransportError,
  toBase64Url,
  verifyIssuers,
  verifyStatement,
} from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import type { ConnectionKeys } from "./connection-keys.ts";
import type { Session } from "./session.ts";

export interface AnswerCheck {
  readonly port: Port;
  readonly answer: BootstrapAnswer;
  readonly keys: ConnectionKeys;
  readonly participantId: string;
  readonly transport: "tcp" | "websocket";
  /** Server time, ms. */
  readonly now: number;
  readonly pinnedRoot?: string | undefined;
  /** The session that is being refreshed: who we are may not change under a running connection. */
  readonly previous?: Session | undefined;
}

/** Verifies every signed part of a bootstrap answer against our own keys; pure. */
export function verifyAnswer(check: AnswerCheck): Result<Session, TransportError> {
  const issuers = verifyIssuers(check.port, {
    signed: check.answer.issuers,
    ...(check.pinnedRoot === undefined ? {} : { pinnedRoot: check.pinnedRoot }),
    ...(check.previous === undefined ? {} : { minimumSequence: check.previous.issuers.sequence }),
  });
  if (issuers.isErr()) return err(untrusted("the list of issuers", issuers.error));
  const authorization = verifyAuthorization(check, issuers.value);
  if (authorization.isErr()) return err(authorization.error);
  const bindings = verifyBindings(check, issuers.value);
  if (bindings.isErr()) return err(bindings.error);
  const resources = verifyResources(check, issuers.value);
  if (resources.isErr()) return err(resources.error);
  const digestText = authorizationDigest(check.port, check.answer.authorization.payload);
  const digest = fromBase64Url(digestText) ?? new Uint8Array(32);
  const routeKeys = openRouteKeys(check, digestText);
  if (routeKeys.isErr()) return err(routeKeys.error);
  const servers = check.answer.transports[check.transport];
  if (servers.length === 0) return err(noTransport(check.transport));
  const session: Session = {
    connection: check.answer.connection,
    assignment: check.answer.assignment,
    participant: check.answer.participant,
    authorization: authorization.value,
    digest,
    digestText,
    grants: check.answer.grants,
    issuers: issuers.value,
    bindings: bindings.value,
    unbound: new Map(check.answer.unbound.map(({ api, reason }) => [api, reason])),
    routeKeys: routeKeys.value,
    servers,
    resources: resources.value,
  };
  const changed = check.previous === undefined ? undefined : changedIdentity(check.previous, session);
  return changed === undefined ? ok(session) : err(mismatch(changed));
}

function verifyAuthorization(check: AnswerCheck, issuers: IssuerSet): Result<Authorization, TransportError> {
  const verified = verifyStatement(check.port, {
    ...AUTHORIZATION,
    signed: check.answer.authorization,
    issuers,
    now: check.now,
  });
  if (verified.isErr()) return err(untrusted("the authorization", verified.error));
  const checked = checkAuthorization(verified.value, {
    now: check.now,
    participant: { id: check.participantId },
    sessionKey: toBase64Url(check.keys.session.publicKey),
    exchangeKey: toBase64Url(check.keys.exchange.publicKey),
    connection: check.answer.connection,
    deployment: check.answer.assignment.deployment,
  });
  if (checked.isErr()) return err(mismatch(checked.error.reason, checked.error));
  const found = checked.value;
  if (found.identity !== keyId(check.port, check.keys.identity.publicKey)) return err(mismatch("identity"));
  if (found.instance !== check.answer.assignment.instance) return err(mismatch("instance"));
  // The grants come beside the authorization, unsigned: they count only if they are those that it names.
  if (found.grants !== grantsDigest(check.port, check.answer.grants)) return err(mismatch("grants"));
  return ok(found);
}

function verifyBindings(
  check: AnswerCheck,
  issuers: IssuerSet,
): Result<ReadonlyMap<string, ApiBinding>, TransportError> {
  const bindings = new Map<string, ApiBinding>();
  for (const signed of check.answer.bindings) {
    const verified = verifyStatement(check.port, {
      ...API_BINDING,
      signed,
      issuers,
      now: check.now,
    });
    if (verified.isErr()) return err(untrusted("a binding", verified.error));
    if (verified.value.consumer !== check.answer.assignment.deployment) return err(mismatch("binding"));
    if (check.now > verified.value.expiresAt) return err(mismatch("binding_expired"));
    bindings.set(verified.value.api, verified.value);
  }
  return ok(bindings);
}

function verifyResources(check: AnswerCheck, issuers: IssuerSet): Result<ResourceBindings, TransportError> {
  const { answer, now, port } = check;
  const verified = verifyStatement(port, { ...RESOURCES, signed: answer.resources, issuers, now });
  if (verified.isErr()) return err(untrusted("the resources", verified.error));
  if (verified.value.deployment !== answer.assignment.deployment) return err(mismatch("resources"));
  return now > verified.value.expiresAt ? err(mismatch("resources_expired")) : ok(verified.value);
}

function openRouteKeys(
  check: AnswerCheck,
  digestText: string,
): Result<ReadonlyMap<number, ExchangeKey>, TransportError> {
  const keys = new Map<number, ExchangeKey>();
  for (const sealed of check.answer.route) {
    const secret = openRouteKey(check.port, {
      sealed,
      exchange: check.keys.exchange,
      deployment: check.answer.assignment.deployment,
      authorization: digestText,
    });
    if (secret === undefined) return err(mismatch("sealed route key"));
    keys.set(sealed.epoch, check.port.x25519.keyPair(secret));
  }
  return ok(keys);
}

/** Names the first thing that a refresh may not change; `undefined` when the new session continues the old. */
function changedIdentity(before: Session, after: Session): string | undefined {
  if (before.connection !== after.connection) return "connection id";
  if (before.participant.id !== after.participant.id) return "participant";
  if (before.authorization.inbox !== after.authorization.inbox) return "inbox prefix";
  if (before.authorization.login !== after.authorization.login) return "login session";
  if (before.assignment.deployment !== after.assignment.deployment) return "deployment";
  return undefined;
}

function untrusted(what: string, cause: Error): TransportError {
  return new TransportError({
    code: "trellis.bootstrap.untrusted",
    message: `The control plane's answer cannot be trusted: ${what} did not verify.`,
    hint: "Check that TRELLIS_URL and TRELLIS_ROOT name the same platform.",
    cause,
  });
}

function mismatch(what: string, cause?: Error): TransportError {
  return new TransportError({
    code: "trellis.bootstrap.participant_mismatch",
    message: `The control plane's authorization is not for this connection: ${what.replaceAll("_", " ")}.`,
    hint: "Check that the seed belongs to an instance of this participant.",
    ...(cause === undefined ? {} : { cause }),
  });
}

function noTransport(kind: "tcp" | "websocket"): TransportError {
  return new TransportError({
    code: "trellis.runtime.no_transport",
    message: `The platform offers no ${kind} address.`,
    hint:
      kind === "tcp"
        ? "Enable the TCP listener of nats-server and list it in the server's configuration."
        : "Enable the websocket listener of nats-server and list it in the server's configuration.",
  });
}
