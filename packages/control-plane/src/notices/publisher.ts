import type { JetStreamClient } from "@nats-io/jetstream";
import {
  type NoticeKind,
  type Signed,
  storedAuthorizationSubject,
  storedGrantsSubject,
  storedNoticeSubject,
} from "@trellis/protocol";
import { deadLetterKeepMs } from "../resources/stream-config.ts";

/**
 * How long an authorization can be found after it expired, ms: an event that it stands behind may come back from the
 * dead letters for as long as those are kept, and a day is for clocks that differ.
 */
export const authorizationKeepMs = deadLetterKeepMs + 86_400_000;
const endLifeMs = 3_600_000;

/**
 * Writes what the control plane says into the streams of its own account. SQL is always first: whoever calls
 * this has committed already, and a lost stream can be written again from SQL.
 */
export class NoticePublisher {
  readonly #stream: JetStreamClient;
  /** Grants that this process has written; they never change and never expire. */
  readonly #grants = new Set<string>();

  constructor(stream: JetStreamClient) {
    this.#stream = stream;
  }

  /** Publishes an authorization, to be found by its digest; `lifeMs`: what is left of it, negative when it is over. */
  async authorization(digest: string, signed: Signed, lifeMs: number): Promise<void> {
    await this.#write(
      storedAuthorizationSubject(digest),
      JSON.stringify(signed),
      lifeMs + authorizationKeepMs,
    );
  }

  /** Publishes a set of grants, once. */
  async grants(digest: string, body: string): Promise<void> {
    if (this.#grants.has(digest)) return;
    await this.#write(storedGrantsSubject(digest), body);
    this.#grants.add(digest);
  }

  /** The stream was lost: what was written has to be written again. */
  forgetGrants(): void {
    this.#grants.clear();
  }

  /** Publishes a signed notice; `id` is what it is about. Connection ends are soon of no interest. */
  async notice(kind: NoticeKind, id: string, signed: Signed): Promise<void> {
    const life = kind === "connection-end" ? endLifeMs : undefined;
    await this.#write(storedNoticeSubject(kind, id), JSON.stringify(signed), life);
  }

  async #write(subject: string, body: string, lifeMs?: number): Promise<void> {
    const ttl = lifeMs === undefined ? {} : { ttl: `${Math.max(1, Math.ceil(lifeMs / 1000))}s` };
    await this.#stream.publish(subject, body, ttl);
  }
}
