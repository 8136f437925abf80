import { ok, type Result } from "@trellis/result";
import { type Static, Type } from "typebox";
import type { AuthError } from "../errors/auth-error.ts";
import type { Port } from "../port/port.ts";
import { inboxPrefix } from "../subjects/subject.ts";
import {
  CLOSED,
  DigestField,
  KeyField,
  KeyIdField,
  ParticipantField,
  TextField,
  TimeField,
  TokenField,
} from "./fields.ts";
import { textDigest } from "./keys.ts";
import { refused } from "./signed.ts";

/** On whose behalf a connection acts. */
export const PRINCIPAL_KINDS = ["service", "app", "user", "platform"] as const;

/** What one connection may do. Known by its digest. */
export const AuthorizationSchema = Type.Object(
  {
    version: Type.Literal(1),
    issuer: KeyIdField,
    principal: Type.Object({ kind: Type.Enum(PRINCIPAL_KINDS), id: TextField }, CLOSED),
    /** Key id of the identity key that proved itself at bootstrap. */
    identity: KeyIdField,
    participant: ParticipantField,
    deployment: TokenField,
    instance: TokenField,
    connection: TokenField,
    /** The login session, for a connection of a person. */
    login: Type.Union([TextField, Type.Null()]),
    sessionKey: KeyField,
    exchangeKey: KeyField,
    /** Where replies to this connection go. */
    inbox: TextField,
    grants: DigestField,
    /** Digest of the transport policy: the exact subjects that NATS allows. */
    policy: DigestField,
    notBefore: TimeField,
    expiresAt: TimeField,
  },
  CLOSED,
);

export type Authorization = Static<typeof AuthorizationSchema>;

/** The authorization as a kind of statement. */
export const AUTHORIZATION = { label: "trellis.authorization.v1", schema: AuthorizationSchema } as const;

/** The digest that an authorization is known by: of its exact payload text. */
export function authorizationDigest(port: Port, payload: string): string {
  return textDigest(port, payload);
}

/** What an authorization must say; what is left out is not compared. */
export interface AuthorizationExpectation {
  readonly now: number;
  /** How far clocks may differ at the beginning of its life. Default 5 000 ms; its end is exact. */
  readonly leewayMs?: number;
  readonly participant?: { readonly id: string; readonly digest?: string };
  readonly sessionKey?: string;
  readonly exchangeKey?: string;
  readonly connection?: string;
  readonly deployment?: string;
}

/**
 * Whether a verified authorization is in force and is the one that is expected. Reasons: `not_yet_valid`,
 * `expired`, `participant_mismatch`, `session_mismatch`, `exchange_mismatch`, `connection_mismatch` (also when
 * its inbox is not that of its connection), `deployment_mismatch`.
 */
export function checkAuthorization(
  authorization: Authorization,
  expected: AuthorizationExpectation,
): Result<Authorization, AuthError> {
  const { now, leewayMs = 5_000, participant } = expected;
  if (now + leewayMs < authorization.notBefore) return refused("not_yet_valid");
  if (now >= authorization.expiresAt) return refused("expired");
  if (participant !== undefined && differs(participant.id, authorization.participant.id)) {
    return refused("participant_mismatch");
  }
  if (differs(participant?.digest, authorization.participant.digest)) return refused("participant_mismatch");
  if (differs(expected.sessionKey, authorization.sessionKey)) return refused("session_mismatch");
  if (differs(expected.exchangeKey, authorization.exchangeKey)) return refused("exchange_mismatch");
  if (differs(expected.connection, authorization.connection)) return refused("connection_mismatch");
  // Whoever replies trusts the inbox: it must be this connection's own.
  if (authorization.inbox !== inboxPrefix(authorization.connection)) return refused("connection_mismatch");
  if (differs(expected.deployment, authorization.deployment)) return refused("deployment_mismatch");
  return ok(authorization);
}

function differs(expected: string | undefined, actual: string): boolean {
  return expected !== undefined && expected !== actual;
}
