import { compileSchema } from "@trellis/contract";
import { ok, type Result } from "@trellis/result";
import { type Static, Type } from "typebox";
import type { AuthError } from "../errors/auth-error.ts";
import type { Port, SigningKey } from "../port/port.ts";
import {
  DigestField,
  KeyField,
  ParticipantField,
  TextField,
  TimeField,
  TokenField,
} from "../statements/fields.ts";
import { isSignedBy, readPayload, refused, type Signed, signStatement } from "../statements/signed.ts";

/** The domain label of a heartbeat's signature. */
export const HEARTBEAT_LABEL = "trellis.heartbeat.v1";

const Count = Type.Integer({ minimum: 0 });
const Status = Type.Enum(["ok", "degraded", "failed"]);
const Info = Type.Record(Type.String(), Type.Unknown());

/** How one check of a process went. */
export const HealthCheckSchema = Type.Object({
  name: TextField,
  status: Status,
  summary: Type.Optional(TextField),
  info: Type.Optional(Info),
  durationMs: Type.Optional(Type.Number({ minimum: 0 })),
});

export type HealthCheck = Static<typeof HealthCheckSchema>;

/** How a process is: published at once after connecting, then at every interval. Open: later versions say more. */
export const HeartbeatSchema = Type.Object({
  version: Type.Literal(1),
  kind: TokenField,
  participant: ParticipantField,
  deployment: TokenField,
  instance: TokenField,
  connection: TokenField,
  sessionKey: KeyField,
  /** Digest of the authorization in force. */
  authorization: Type.Optional(DigestField),
  /** The deployment's stable name. */
  name: TextField,
  /** When the sample was taken. */
  at: TimeField,
  /** The worst of the checks. */
  status: Status,
  uptimeMs: Count,
  intervalMs: Type.Integer({ minimum: 1 }),
  /** Versions of what it runs on: `{ trellis: "1.0.0", node: "20.20.2" }`. */
  runtime: Type.Record(Type.String(), TextField),
  /** What the service says about itself. */
  info: Type.Optional(Type.Object({ version: Type.Optional(TextField), info: Type.Optional(Info) })),
  checks: Type.Array(HealthCheckSchema, { maxItems: 256 }),
  /** Work at hand; `zombies` are handlers that ignored their aborted signal. */
  load: Type.Optional(Type.Object({ inFlight: Count, zombies: Count })),
});

export type Heartbeat = Static<typeof HeartbeatSchema>;

/** Signs a heartbeat by the session key: a broker permission alone is no identity. */
export function signHeartbeat(port: Port, input: { heartbeat: Heartbeat; key: SigningKey }): Signed {
  return signStatement(port, { label: HEARTBEAT_LABEL, payload: input.heartbeat, key: input.key });
}

/**
 * The heartbeat that the session key signed. The receiver has the key from the connection's authorization, and
 * compares connection and deployment with the subject. Reasons as of a statement.
 */
export function verifyHeartbeat(
  port: Port,
  input: { signed: Signed; publicKey: Uint8Array },
): Result<Heartbeat, AuthError> {
  const payload = readPayload(input.signed);
  if (!payload.ok) return payload;
  if (!isSignedBy(port, { label: HEARTBEAT_LABEL, ...input })) return refused("signature_invalid");
  if (compileSchema(HeartbeatSchema).issues(payload.value) !== undefined) return refused("schema_mismatch");
  return ok(payload.value as Heartbeat);
}
