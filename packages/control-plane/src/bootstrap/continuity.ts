import { type Authorization, type BootstrapRequest, isId, newId, type Port } from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import type { Clock } from "@trellis/runtime/node";
import { storedPolicy, type TransportPolicy } from "../authority/policy.ts";
import { type AuthorizationRow, findAuthorization, readContent } from "../storage/authorizations.ts";
import { findConnection } from "../storage/connections.ts";
import { latestRevocation } from "../storage/revocations.ts";
import type { Storage } from "../storage/storage.ts";
import type { Admitted } from "./admission.ts";
import { type Refusal, refusal } from "./refusal.ts";

/** The connection that is asked for: a new id, or the one that the same keys hold already. */
export interface Continuity {
  connection: string;
  /** The authorization before this one, on a refresh. */
  before: { row: AuthorizationRow; policy: TransportPolicy } | undefined;
}

/**
 * Decides under which connection id a process goes on. A known id belongs to its identity, session and exchange
 * key; one that was forgotten may be taken up again by anybody who was admitted; one that was revoked never.
 */
export async function continueConnection(
  deps: { port: Port; clock: Clock; storage: Storage },
  request: BootstrapRequest,
  admitted: Admitted,
): Promise<Result<Continuity, Refusal>> {
  const { queries } = deps.storage;
  const connection = request.connection ?? newId(deps.port, deps.clock.now());
  if (request.connection === undefined) return ok({ connection, before: undefined });
  if (!isId(connection)) return err(refusal("trellis.bootstrap.invalid_request"));
  if ((await latestRevocation(queries, [["connection", connection]])) !== undefined) {
    return err(refusal("trellis.bootstrap.revoked"));
  }
  const known = await findConnection(queries, connection);
  if (known === undefined) return ok({ connection, before: undefined });
  const row = await findAuthorization(queries, known.authorizationDigest);
  const same =
    known.identityKey === request.identityKey &&
    known.sessionKey === request.sessionKey &&
    known.instanceId === admitted.instance.id &&
    (row === undefined || exchangeKeyOf(row) === request.exchangeKey);
  if (!same) return err(refusal("trellis.bootstrap.connection_mismatch"));
  const body = row === undefined ? undefined : await readContent(queries, row.policyDigest);
  const before = row === undefined || body === undefined ? undefined : { row, policy: storedPolicy(body) };
  return ok({ connection, before });
}

function exchangeKeyOf(row: AuthorizationRow): string {
  const payload = JSON.parse(row.payload) as Authorization;
  return payload.exchangeKey;
}
