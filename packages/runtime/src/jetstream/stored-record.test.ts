import { headers } from "@nats-io/transport-node";
import { Type } from "typebox";
import { afterAll, beforeAll, expect, it } from "vitest";
import { defineKv, initialOf, makeBucket } from "../kv/kv.test-kit.ts";
import { type Streams, startStreams, type TestLink } from "./streams.test-kit.ts";

let streams: Streams;
let link: TestLink;
beforeAll(async () => {
  streams = await startStreams();
  link = await streams.link();
});
afterAll(() => streams[Symbol.asyncDispose]());

it("a stored message has the subject, sequence and time that the server says, not those that its writer claims", async () => {
  const { open, subject } = await makeBucket(streams, defineKv({ value: Type.Integer(), history: 3 }));
  const bucket = open(link);
  await bucket.put("k", 1).orThrow();
  const watch = bucket.watch()[Symbol.asyncIterator]();
  await initialOf(watch);
  const claims = headers();
  claims.set("Nats-Subject", `${subject}.other`);
  claims.set("Nats-Sequence", "999");
  claims.set("Nats-Time-Stamp", "2001-01-01T00:00:00Z");
  claims.set("Nats-Last-Sequence", "998");
  await streams.admin.request(`${subject}.k`, "2", { headers: claims, timeout: 5_000 });
  const change = (await watch.next()).value;
  const read = await bucket.get("k").orThrow();
  const listed = await bucket.entries().collect().orThrow();
  for (const entry of [change, read, listed[0]]) {
    expect(entry).toMatchObject({ kind: "value", key: "k", value: 2, revision: 2 });
    if (entry?.kind === "value") expect(entry.updatedAt.getFullYear()).toBeGreaterThan(2020);
  }
  expect(await bucket.history("k").orThrow()).toHaveLength(2);
  await watch.return?.();
});
