import { newId, type Port } from "@trellis/protocol";
import type { Clock } from "@trellis/runtime/node";
import type { Transaction } from "kysely";
import type { NoticeOutbox } from "../notices/outbox.ts";
import { revokeAuthorizations } from "../storage/authorizations.ts";
import { type ConnectionRow, connectionsOf, findConnection } from "../storage/connections.ts";
import { type DeploymentRow, rollEpoch } from "../storage/deployments.ts";
import { saveRevocation } from "../storage/revocations.ts";
import type { Database } from "../storage/schema.ts";
import type { AuditEntry, Storage } from "../storage/storage.ts";
import type { RevocationSubject, Statements } from "./statements.ts";

/** Closes sockets; the tracker of connections does. */
export interface Kicker {
  kick(connection: string): Promise<boolean>;
}

export interface RevokerDeps {
  port: Port;
  clock: Clock;
  storage: Storage;
  statements: Statements;
  outbox: NoticeOutbox;
  kicker: Kicker;
}

/** A revocation that SQL holds; what is left is to tell and to kick. */
export interface Revoked {
  connections: readonly ConnectionRow[];
  rolled: DeploymentRow | undefined;
}

const columns = {
  connection: "connectionId",
  instance: "instanceId",
  deployment: "deploymentId",
} as const;

/**
 * Takes authority away.
 *
 * The order is the invariant: 1. SQL, in the mutation that caused it: from its commit on the callout refuses;
 * 2. the signed notice: from then on providers refuse; 3. the kick: only now, since whoever is kicked comes
 * straight back. What a crash or an absent broker leaves undone, the next start or sweep does, from SQL.
 */
export class Revoker {
  readonly #deps: RevokerDeps;

  constructor(deps: RevokerDeps) {
    this.#deps = deps;
  }

  /** Step 1, inside a mutation. Instances and deployments also roll their route epoch, at once. */
  async record(
    tx: Transaction<Database>,
    subject: RevocationSubject & { kind: keyof typeof columns },
    reason: string,
  ): Promise<Revoked> {
    const at = this.#deps.clock.now();
    const signed = this.#deps.statements.revocation({ kind: subject.kind, id: subject.id }, at, reason);
    await saveRevocation(tx, { subjectKind: subject.kind, subjectId: subject.id, at, reason, ...signed });
    await revokeAuthorizations(tx, { column: columns[subject.kind], id: subject.id }, at);
    const connections = await this.#connections(tx, subject);
    const deployment = await deploymentToRoll(tx, subject);
    const rolled = deployment === undefined ? undefined : await rollEpoch(tx, deployment);
    await this.#deps.outbox.addRevocation(tx, subject);
    if (rolled !== undefined) await this.#deps.outbox.addRoute(tx, rolled.id);
    return { connections, rolled };
  }

  /** Steps 2 and 3, after the commit. */
  async enforce(revoked: Revoked): Promise<void> {
    const { outbox, kicker } = this.#deps;
    await outbox.flush();
    await Promise.all(revoked.connections.map((connection) => kicker.kick(connection.id)));
  }

  /** All three steps for one connection. */
  async revokeConnection(connection: string, reason: string, actor: string): Promise<void> {
    const subject = { kind: "connection", id: connection } as const;
    const audit = this.audit(actor, "connection.revoke", connection, { reason });
    const revoked = await this.#deps.storage.mutate(audit, (tx) => this.record(tx, subject, reason));
    await this.enforce(revoked);
  }

  /** An audit entry of now. */
  audit(actor: string, action: string, subject: string, detail: AuditEntry["detail"] = {}): AuditEntry {
    const at = this.#deps.clock.now();
    return { id: newId(this.#deps.port, at), at, actor, action, subject, detail };
  }

  async #connections(
    tx: Transaction<Database>,
    subject: RevocationSubject,
  ): Promise<readonly ConnectionRow[]> {
    if (subject.kind === "instance") return connectionsOf(tx, { column: "instanceId", id: subject.id });
    if (subject.kind === "deployment") return connectionsOf(tx, { column: "deploymentId", id: subject.id });
    const row = await findConnection(tx, subject.id);
    return row === undefined ? [] : [row];
  }
}

/** A disabled instance knew its deployment's route key: that key is void. */
async function deploymentToRoll(
  tx: Transaction<Database>,
  subject: RevocationSubject,
): Promise<string | undefined> {
  if (subject.kind === "deployment") return subject.id;
  if (subject.kind !== "instance") return undefined;
  const row = await tx
    .selectFrom("instances")
    .select("deploymentId")
    .where("id", "=", subject.id)
    .executeTakeFirst();
  return row?.deploymentId;
}
