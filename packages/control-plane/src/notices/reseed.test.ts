import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { storedAuthorizationSubject } from "@trellis/protocol";
import { FakeClock, startNats, type TestNats } from "@trellis/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Statements } from "../authority/statements.ts";
import {
  type AuthorizationRow,
  findAuthorization,
  forgetAuthorizations,
  insertAuthorization,
  saveContent,
} from "../storage/authorizations.ts";
import { Storage } from "../storage/storage.ts";
import { authorizationKeepMs } from "./publisher.ts";
import { NoticeStreams } from "./reseed.ts";
import { authorizationStream } from "./streams.ts";

const hour = 3_600_000;
const start = 1_900_000_000_000;

let nats: TestNats;
let link: NatsConnection;
let storage: Storage;
let clock: FakeClock;

beforeEach(async () => {
  nats = await startNats();
  link = await connect({ servers: nats.url });
  storage = await Storage.open(":memory:");
  clock = new FakeClock(start);
});
afterEach(async () => {
  await link.close();
  await nats.stop();
  await storage.close();
});

function streams(): NoticeStreams {
  // No route and no revocation is in these tables: nothing is signed.
  return new NoticeStreams({ nats: link, storage, statements: {} as Statements, clock, replicas: 1 });
}

async function insert(digest: string, expiresAt: number): Promise<void> {
  const row: AuthorizationRow = {
    digest,
    connectionId: `c-${digest}`,
    instanceId: "i1",
    deploymentId: "d1",
    payload: `{"of":"${digest}"}`,
    signature: "s",
    grantsDigest: "g1",
    policyDigest: "p1",
    issuedAt: expiresAt - hour,
    sessionKey: "k1",
    expiresAt,
    revokedAt: null,
  };
  await insertAuthorization(storage.queries, row);
}

async function stored(digest: string) {
  const manager = await jetstreamManager(link, { checkAPI: false });
  return manager.streams
    .getMessage(authorizationStream.name, { last_by_subj: storedAuthorizationSubject(digest) })
    .then((message) => message?.json<{ payload: string }>().payload)
    .catch(() => undefined);
}

async function count(): Promise<number> {
  const manager = await jetstreamManager(link, { checkAPI: false });
  return (await manager.streams.info(authorizationStream.name)).state.messages;
}

describe("authorizations of publishers", () => {
  it("are all written again after a lost broker, over many pages, but for those that nobody needs any more", async () => {
    await saveContent(storage.queries, { digest: "g1", kind: "grants", body: "{}" });
    const total = 600;
    for (let n = 0; n < total; n += 1) await insert(`a${n}`, start - n * hour);
    await insert("old", start - authorizationKeepMs - 1);
    const first = streams();
    await first.ensure();
    await first.seed(() => false);
    expect(await count()).toBe(total + 1); // the grants once
    expect(await stored("a599")).toBe('{"of":"a599"}');
    expect(await stored("old")).toBeUndefined();

    const manager = await jetstreamManager(link, { checkAPI: false });
    await manager.streams.delete(authorizationStream.name);
    await first.ensure();
    await first.seed(() => false);
    expect(await count()).toBe(total + 1);
  });

  it("a seed that was stopped in the middle begins anew, and one that is done costs nothing", async () => {
    for (let n = 0; n < 300; n += 1) await insert(`a${n}`, start + hour);
    const first = streams();
    await first.ensure();
    await first.seed(() => true);
    expect(await count()).toBe(256);
    const second = streams();
    await second.ensure();
    await second.seed(() => false);
    expect(await count()).toBe(300);
    await insert("later", start + hour);
    await second.seed(() => false);
    expect(await stored("later")).toBeUndefined(); // whoever issues it writes it
  });

  it("stay in SQL as long as a dead letter may need them, and are forgotten after that, some at a time", async () => {
    for (let n = 0; n < 5; n += 1) await insert(`a${n}`, start + n);
    const forget = (limit: number) =>
      forgetAuthorizations(storage.queries, clock.now() - authorizationKeepMs, limit);
    clock.advance(authorizationKeepMs - 1);
    expect(await forget(10)).toBe(0);
    clock.advance(3);
    expect(await forget(2)).toBe(2);
    expect(await forget(2)).toBe(1);
    expect(await forget(2)).toBe(0);
    expect(await findAuthorization(storage.queries, "a3")).toBeDefined();
    expect(await findAuthorization(storage.queries, "a2")).toBeUndefined();
  });
});
