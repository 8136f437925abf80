import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { revocationNoticeId } from "@trellis/protocol";
import type { Clock } from "@trellis/runtime/node";
import type { Statements } from "../authority/statements.ts";
import { newestAuthorizations, readContent } from "../storage/authorizations.ts";
import { deploymentRows } from "../storage/deployments.ts";
import { allRevocations } from "../storage/revocations.ts";
import type { Storage } from "../storage/storage.ts";
import { NoticePublisher } from "./publisher.ts";
import { authorizationStream, ensureStream, noticeStream } from "./streams.ts";

export interface NoticeStreamsDeps {
  /** The link into the control plane's own account. */
  nats: NatsConnection;
  storage: Storage;
  statements: Statements;
  clock: Clock;
  replicas: number;
}

/** The streams of the control plane's account: made, checked, and written again from SQL when they were lost. */
export class NoticeStreams {
  readonly #deps: NoticeStreamsDeps;
  readonly publisher: NoticePublisher;

  constructor(deps: NoticeStreamsDeps) {
    this.#deps = deps;
    this.publisher = new NoticePublisher(jetstream(deps.nats, { checkAPI: false }));
  }

  /** Safe to repeat; called at start and after every reconnect of the link. */
  async ensure(): Promise<void> {
    const { nats, replicas } = this.#deps;
    const manager = await jetstreamManager(nats, { checkAPI: false });
    const [authorizations, notices] = await Promise.all([
      ensureStream(manager, authorizationStream, replicas),
      ensureStream(manager, noticeStream, replicas),
    ]);
    if (notices.empty) await this.#writeNotices();
    if (authorizations.empty) await this.#writeAuthorizations();
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

  async #writeAuthorizations(): Promise<void> {
    const { queries } = this.#deps.storage;
    const now = this.#deps.clock.now();
    this.publisher.forgetGrants();
    for (const row of await newestAuthorizations(queries)) {
      if (row.expiresAt <= now) continue;
      const body = await readContent(queries, row.grantsDigest);
      if (body !== undefined) await this.publisher.grants(row.grantsDigest, body);
      const { digest, payload, signature, expiresAt } = row;
      await this.publisher.authorization(digest, { payload, signature }, expiresAt - now);
    }
  }
}
