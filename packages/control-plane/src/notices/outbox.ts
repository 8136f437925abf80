import { newId, type Port, revocationNoticeId } from "@trellis/protocol";
import type { Clock } from "@trellis/runtime/node";
import type { Statements } from "../authority/statements.ts";
import type { Log } from "../config/log.ts";
import { Serial } from "../lifecycle/serial.ts";
import { findDeployment } from "../storage/deployments.ts";
import {
  deletePendingNotice,
  insertPendingNotice,
  type PendingNoticeRow,
  pendingNotices,
} from "../storage/pending-notices.ts";
import { findRevocation } from "../storage/revocations.ts";
import type { Queries, Storage } from "../storage/storage.ts";
import type { NoticePublisher } from "./publisher.ts";

export interface NoticeOutboxDeps {
  port: Port;
  clock: Clock;
  storage: Storage;
  statements: Statements;
  publisher: Pick<NoticePublisher, "notice">;
  log: Log;
}

/**
 * What mutations have to tell. It is noted in the mutation's own transaction and published after it: a crash, or
 * a broker that is away, delays a notice and never loses it. A notice that is told twice says the same twice.
 */
export class NoticeOutbox {
  readonly #deps: NoticeOutboxDeps;
  readonly #serial = new Serial();

  constructor(deps: NoticeOutboxDeps) {
    this.#deps = deps;
  }

  /** Notes, inside a mutation, that a deployment's route is to be stated anew. */
  addRoute(tx: Queries, deployment: string): Promise<void> {
    return this.#add(tx, "route", deployment);
  }

  /** Notes, inside a mutation, that a revocation is to be told. */
  addRevocation(tx: Queries, subject: { kind: string; id: string }): Promise<void> {
    return this.#add(tx, "revocation", `${subject.kind} ${subject.id}`);
  }

  /** Publishes what is noted. What fails stays noted and is tried again with the next sweep or reconnect. */
  flush(): Promise<void> {
    return this.#serial.run(async () => {
      const { storage, log } = this.#deps;
      try {
        for (const row of await pendingNotices(storage.queries)) {
          await this.#publish(row);
          await deletePendingNotice(storage.queries, row.id);
        }
      } catch (error) {
        log.warn({ code: "trellis.notices.delayed", error }, "A notice could not be published yet.");
      }
    });
  }

  async #publish({ kind, about }: PendingNoticeRow): Promise<void> {
    const { storage, statements, publisher } = this.#deps;
    if (kind === "route") {
      const deployment = await findDeployment(storage.queries, about);
      if (deployment !== undefined) await publisher.notice("route", about, statements.route(deployment));
      return;
    }
    const space = about.indexOf(" ");
    const subject = { kind: about.slice(0, space), id: about.slice(space + 1) };
    const row = await findRevocation(storage.queries, subject.kind, subject.id);
    if (row === undefined) return;
    const { payload, signature } = row;
    await publisher.notice("revocation", revocationNoticeId(subject), { payload, signature });
  }

  async #add(tx: Queries, kind: PendingNoticeRow["kind"], about: string): Promise<void> {
    await insertPendingNotice(tx, { id: newId(this.#deps.port, this.#deps.clock.now()), kind, about });
  }
}
