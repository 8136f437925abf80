import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { revocationNoticeId } from "@trellis/protocol";
import type { Clock } from "@trellis/runtime/node";
import type { Statements } from "../authority/statements.ts";
import {
  type AuthorizationRow,
  newestAuthorizations,
  pageOfAuthorizations,
  readContent,
} from "../storage/authorizations.ts";
import { deploymentRows } from "../storage/deployments.ts";
import { readMeta, writeMeta } from "../storage/meta.ts";
import { allRevocations } from "../storage/revocations.ts";
import type { Storage } from "../storage/storage.ts";
import { authorizationKeepMs, NoticePublisher } from "./publisher.ts";
import { authorizationStream, ensureStream, noticeStream } from "./streams.ts";

export interface NoticeStreamsDeps {
  /** The link into the control plane's own account. */
  nats: NatsConnection;
  storage: Storage;
  statements: Statements;
  clock: Clock;
  replicas: number;
}

const seededKey = "authorizations.seeded";
const pageSize = 256;

/** The streams of the control plane's account: made, checked, and written again from SQL when they were lost. */
export class NoticeStreams {
  readonly #deps: NoticeStreamsDeps;
  readonly publisher: NoticePublisher;
  /** The stream of authorizations that is there, by the time of its making. */
  #created: string | undefined;

  constructor(deps: NoticeStreamsDeps) {
    this.#deps = deps;
    this.publisher = new NoticePublisher(jetstream(deps.nats, { checkAPI: false }));
  }

  /**
   * Safe to repeat; called at start and after every reconnect of the link. What is connected can go on when it
   * resolves; what events of the past need is written by `seed`.
   */
  async ensure(): Promise<void> {
    const { nats, replicas } = this.#deps;
    const manager = await jetstreamManager(nats, { checkAPI: false });
    const [authorizations, notices] = await Promise.all([
      ensureStream(manager, authorizationStream, replicas),
      ensureStream(manager, noticeStream, replicas),
    ]);
    if (notices.empty) await this.#writeNotices();
    if (this.#created !== authorizations.created) this.publisher.forgetGrants();
    this.#created = authorizations.created;
    if (authorizations.empty) await this.#writeLive();
  }

  /**
   * Writes every authorization that an event or a dead letter may still need into a stream that does not have them,
   * page by page; an end in the middle makes it begin anew. Costs one query when there is nothing to do.
   */
  async seed(isStopped: () => boolean): Promise<void> {
    const { queries } = this.#deps.storage;
    const created = this.#created;
    if (created === undefined || (await readMeta(queries, seededKey)) === created) return;
    let after: string | undefined;
    do {
      const since = this.#deps.clock.now() - authorizationKeepMs;
      const { rows, next } = await pageOfAuthorizations(queries, { limit: pageSize, after }, since);
      await this.#write(rows);
      after = next;
      // The stream was lost again meanwhile.
      if (isStopped() || this.#created !== created) return;
    } while (after !== undefined);
    await writeMeta(queries, seededKey, created);
  }

  async #writeNotices(): Promise<void> {
    const { queries } = this.#deps.storage;
    for (const row of await allRevocations(queries)) {
      const id = revocationNoticeId({ kind: row.subjectKind, id: row.subjectId });
      await this.publisher.notice("revocation", id, { payload: row.payload, signature: row.signature });
    }
    for (const row of await deploymentRows(queries)) {
      await this.publisher.notice("route", row.id, this.#deps.statements.route(row));
    }
  }

  async #writeLive(): Promise<void> {
    const { storage, clock } = this.#deps;
    await this.#write(await newestAuthorizations(storage.queries, clock.now()));
  }

  async #write(rows: readonly AuthorizationRow[]): Promise<void> {
    const { queries } = this.#deps.storage;
    for (const grantsDigest of new Set(rows.map((row) => row.grantsDigest))) {
      const body = await readContent(queries, grantsDigest);
      if (body !== undefined) await this.publisher.grants(grantsDigest, body);
    }
    for (let from = 0; from < rows.length; from += pageSize)
      await Promise.all(rows.slice(from, from + pageSize).map((row) => this.#writeOne(row)));
  }

  async #writeOne({ digest, payload, signature, expiresAt }: AuthorizationRow): Promise<void> {
    const left = expiresAt - this.#deps.clock.now();
    await this.publisher.authorization(digest, { payload, signature }, left);
  }
}
