import type { Clock } from "@trellis/runtime/node";
import { authorizationKeepMs } from "../notices/publisher.ts";
import { endedConnections, forgetAuthorizations, revokeAuthorizations } from "../storage/authorizations.ts";
import { allConnections, type ConnectionRow, deleteConnection } from "../storage/connections.ts";
import { abandonedInstances, deleteInstance } from "../storage/instances.ts";
import type { AuditEntry, Storage } from "../storage/storage.ts";
import type { ConnectionTracker } from "./tracker.ts";

export interface SweeperOptions {
  storage: Storage;
  tracker: ConnectionTracker;
  clock: Clock;
  /** How long a connection that is gone may still come back under its id. */
  keepMs: number;
  /** The same for connections of instances that dev mode provisioned on the fly. */
  ephemeralKeepMs: number;
  audit(action: string, subject: string): AuditEntry;
}

const forgottenAtOnce = 500;

/**
 * Removes what has ended: sockets whose newest authorization is expired or revoked are kicked, connections that
 * are gone for long are forgotten, and so are dev mode's instances with their last connection.
 */
export class Sweeper {
  readonly #options: SweeperOptions;

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  async sweep(): Promise<void> {
    await this.#options.tracker.flush();
    await this.#reap();
    await this.#forgetConnections();
    await this.#removeInstances();
    await this.#forgetAuthorizations();
  }

  /** The broker enforces no authorization's end by itself: its own tokens live longer. */
  async #reap(): Promise<void> {
    const { storage, tracker, clock } = this.#options;
    for (const connection of await endedConnections(storage.queries, clock.now()))
      await tracker.kick(connection);
  }

  async #forgetConnections(): Promise<void> {
    const { storage, tracker, clock } = this.#options;
    const now = clock.now();
    const ephemeral = new Set(
      (await storage.queries.selectFrom("instances").select("id").where("ephemeral", "=", 1).execute()).map(
        (row) => row.id,
      ),
    );
    const over = (await allConnections(storage.queries)).filter(
      (row) =>
        row.state !== "connected" &&
        tracker.socketOf(row.id) === undefined &&
        now - row.updatedAt > this.#keepMs(row, ephemeral),
    );
    if (over.length === 0) return;
    await storage.transact(async (tx) => {
      for (const row of over) await deleteConnection(tx, row.id);
    });
  }

  /** No event and no dead letter can need them any more. A few at a time: others wait for the database meanwhile. */
  async #forgetAuthorizations(): Promise<void> {
    const { storage, clock } = this.#options;
    await forgetAuthorizations(storage.queries, clock.now() - authorizationKeepMs, forgottenAtOnce);
  }

  #keepMs(row: ConnectionRow, ephemeral: ReadonlySet<string>): number {
    return ephemeral.has(row.instanceId) ? this.#options.ephemeralKeepMs : this.#options.keepMs;
  }

  async #removeInstances(): Promise<void> {
    const { storage, clock } = this.#options;
    const now = clock.now();
    for (const instance of await abandonedInstances(storage.queries)) {
      // A new one has no connection yet: its bootstrap is under way.
      if (now - instance.createdAt <= this.#options.ephemeralKeepMs) continue;
      await storage.mutate(this.#options.audit("instance.remove", instance.id), async (tx) => {
        await revokeAuthorizations(tx, { column: "instanceId", id: instance.id }, now);
        await deleteInstance(tx, instance.id);
      });
    }
  }
}
