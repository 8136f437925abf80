import { connect, type NatsConnection } from "@nats-io/transport-node";
import { type Heartbeat, healthSubject, signHeartbeat, toBase64Url } from "@trellis/protocol";
import { portablePort as port } from "@trellis/protocol/portable";
import { FakeClock, startNats, type TestNats } from "@trellis/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { deleteConnection, saveConnection, setConnectionSocket } from "../storage/connections.ts";
import { Storage } from "../storage/storage.ts";
import { JobWorkers } from "./job-workers.ts";

const own = port.ed25519.keyPair(new Uint8Array(32).fill(1));
const other = port.ed25519.keyPair(new Uint8Array(32).fill(2));

let nats: TestNats;
let link: NatsConnection;
let sender: NatsConnection;
let storage: Storage;
let clock: FakeClock;
let workers: JobWorkers;

beforeEach(async () => {
  nats = await startNats();
  storage = await Storage.open(":memory:");
  clock = new FakeClock();
  link = await connect({ servers: nats.url });
  sender = await connect({ servers: nats.url });
  workers = new JobWorkers({ nats: link, storage, port, clock });
  workers.start();
  await link.flush();
  await saveConnection(storage.queries, {
    id: "c1",
    instanceId: "i1",
    deploymentId: "d1",
    participantId: "acme.press",
    participantDigest: "x",
    identityKey: "k",
    sessionKey: toBase64Url(own.publicKey),
    authorizationDigest: "a",
    state: "connected",
    serverId: null,
    cid: null,
    createdAt: 0,
    updatedAt: 0,
  });
});
afterEach(async () => {
  workers.stop();
  await Promise.all([link.close(), sender.close(), storage.close()]);
  await nats.stop();
});

const beat = (change: Partial<Heartbeat> = {}, running = 1): Heartbeat => ({
  version: 1,
  kind: "service",
  participant: { id: "acme.press", digest: toBase64Url(new Uint8Array(32)) },
  deployment: "d1",
  instance: "i1",
  connection: "c1",
  sessionKey: toBase64Url(own.publicKey),
  name: "acme.press",
  at: clock.now(),
  status: "ok",
  uptimeMs: 5,
  intervalMs: 30_000,
  runtime: {},
  checks: [{ name: "jobs", status: "ok", info: { workers: [{ queue: "print", concurrency: 4, running }] } }],
  ...change,
});

/** Heartbeats of one sender are taken in their order: once a later one is shown, those before it are decided. */
async function say(heartbeat: Heartbeat, { key = own, at = "d1.c1" } = {}) {
  const [deployment = "", id = ""] = at.split(".");
  const subject = healthSubject({ kind: "service", deployment, connection: id });
  sender.publish(subject, JSON.stringify(signHeartbeat(port, { heartbeat, key })));
  await sender.flush();
}

async function shown() {
  return (await workers.list()).map(({ queue, running, isLate }) => ({ queue, running, isLate }));
}

it("shows what the connection's own key signed, and nothing else", async () => {
  await say(beat({}, 3), { key: other });
  await say(beat({ deployment: "d2" }, 3), { at: "d2.c1" });
  await say(beat({ connection: "c2" }, 3));
  await say(beat({ connection: "c2" }, 3), { at: "d1.c2" });
  await say(beat({ checks: [{ name: "jobs", status: "ok", info: { workers: [{ queue: 7 }] } }] }));
  clock.advance(1);
  await say(beat());
  await expect.poll(shown).toEqual([{ queue: "print", running: 1, isLate: false }]);
  expect(await workers.list("d2")).toEqual([]);
  // Sent again, an older one tells nothing.
  await say(beat({ at: clock.now() - 1 }, 9));
  clock.advance(1);
  await say(beat({}, 2));
  await expect.poll(shown).toEqual([{ queue: "print", running: 2, isLate: false }]);
});

it("forgets a worker that misses two heartbeats, and one whose connection ended", async () => {
  await say(beat());
  await expect.poll(shown).toHaveLength(1);
  clock.advance(40_000);
  expect(await shown()).toMatchObject([{ isLate: true }]);
  const socket = { serverId: null, cid: null, updatedAt: 0 };
  await setConnectionSocket(storage.queries, "c1", { ...socket, state: "disconnected" });
  expect(await shown()).toEqual([]);
  await setConnectionSocket(storage.queries, "c1", { ...socket, state: "connected" });
  expect(await shown()).toHaveLength(1);
  clock.advance(40_000);
  expect(await shown()).toEqual([]);
  await say(beat());
  await expect.poll(shown).toHaveLength(1);
  await deleteConnection(storage.queries, "c1");
  expect(await shown()).toEqual([]);
});
