import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { NatsConnection } from "@nats-io/nats-core";
import { controlSubject, rpcSubject } from "@trellis/protocol";
import { eventually } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { capturing, pause, recordingLog, startWork, watchUnhandled } from "./kit.ts";

const text = new TextEncoder();

/** What breaks parsers. */
const hostile: readonly Uint8Array[] = [
  new Uint8Array(0),
  text.encode("{"),
  text.encode("null"),
  text.encode('{"text":"no frame"}'),
  new Uint8Array([0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80]),
  new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0x7d]),
  new Uint8Array(1024 * 1024 - 1024).fill("[".charCodeAt(0)),
  gzipSync(text.encode("x".repeat(100_000))),
  new Uint8Array(200),
  new Uint8Array(200).fill(0xff),
  new Uint8Array([1]),
  new Uint8Array([1, 0, ...new Uint8Array(52)]),
  new Uint8Array([1, 0, ...new Uint8Array(52).fill(0xff), ...new Uint8Array(200).fill(0xff)]),
];

/** A frame of ours that was changed in one place, cut short or made longer. */
function mutated(frame: Uint8Array): Uint8Array {
  const copy = frame.slice();
  const at = Math.floor(Math.random() * copy.length);
  switch (Math.floor(Math.random() * 5)) {
    case 0:
      copy[at] = (copy[at] ?? 0) ^ (1 << Math.floor(Math.random() * 8));
      return copy;
    case 1:
      return copy.subarray(0, at);
    case 2:
      return new Uint8Array([...copy, ...randomBytes(1 + (at % 50))]);
    case 3:
      copy.set([0xff, 0xff, 0xff, 0xff].slice(0, copy.length - at), at);
      return copy;
    default:
      return copy; // the very same again: a replay
  }
}

/** Keeps copies of what a connection publishes on a subject. */
function recordFrames(nats: NatsConnection, subject: string): Uint8Array[] {
  const frames: Uint8Array[] = [];
  const publish = nats.publish.bind(nats);
  nats.publish = (to, payload, options) => {
    if (to === subject && payload instanceof Uint8Array) frames.push(payload.slice());
    publish(to, payload, options);
  };
  return frames;
}

describe("garbage on the subjects of a service", () => {
  it("is refused or dropped; all good calls between are answered, and nothing is unhandled", async () => {
    using unhandled = watchUnhandled();
    const wire = capturing();
    const log = recordingLog();
    const served = capturing();
    await using working = await startWork({
      client: { platform: wire.platform },
      service: { platform: served.platform, runtime: { log } },
    });
    const { client, service, done } = working;
    const [nats] = wire.dialled;
    if (nats === undefined) throw new Error("not dialled");
    const { deployment, connectionId } = service.auth;
    const subject = rpcSubject({ api: "faults.work@v1", deployment, action: "Work.Echo" });
    const control = [connectionId, "all"].map((target) => controlSubject(deployment, target));
    const frames = recordFrames(nats, subject);
    expect((await client.rpc.work.echo({ text: "first" })).isOk()).toBe(true);
    const inbox = (nats as { options?: { inboxPrefix?: string } }).options?.inboxPrefix ?? "_INBOX.none";
    const replies = [undefined, `${inbox}.r.zzz`, "_INBOX.somebody.r.else", "x".repeat(200)];

    const send = (payload: Uint8Array) => {
      const reply = replies[Math.floor(Math.random() * replies.length)];
      const options = reply === undefined ? {} : { reply };
      nats.publish(subject, payload, options);
      for (const to of control) nats.publish(to, payload, options);
    };
    for (const payload of hostile) {
      send(payload);
      expect((await client.rpc.work.echo({ text: "good" }, { timeout: 3_000 })).orThrow().text).toBe("good");
    }
    const total = 10_000;
    const good: PromiseLike<unknown>[] = [];
    for (let sent = 0; sent < total; sent += 1) {
      const known = frames[sent % frames.length] ?? new Uint8Array(0);
      send(sent % 2 === 0 ? mutated(known) : randomBytes(Math.floor(Math.random() * 400)));
      if (sent % (total / 100) === 0)
        good.push(client.rpc.work.echo({ text: `${sent}` }, { timeout: 10_000 }).orThrow());
      if (sent % 50 === 0) await nats.flush();
    }
    expect(good.length).toBeGreaterThanOrEqual(100);
    for (const call of good) await call;
    await nats.flush();
    expect((await client.rpc.work.slow({ n: 1, ms: 50 })).isOk()).toBe(true);
    expect(done.begun).toEqual([1]);
    // All of it did arrive.
    expect(served.dialled[0]?.stats().inMsgs).toBeGreaterThan(3 * total);
    expect(log.records.filter(({ level }) => level === "error")).toEqual([]);
    // What cannot be trusted fills no log either.
    expect(log.records.filter(({ level }) => level === "warn").length).toBeLessThan(50);
    await pause(10);
    expect(unhandled.seen).toEqual([]);
  });

  it("on a caller's inbox: late, double, foreign and broken answers are dropped and counted", async () => {
    using unhandled = watchUnhandled();
    const wire = capturing();
    await using working = await startWork({ service: { platform: wire.platform } });
    const { client } = working;
    const [nats] = wire.dialled;
    if (nats === undefined) throw new Error("not dialled");
    // A provider that sends every answer twice, and rubbish to the same place before and after.
    const publish = nats.publish.bind(nats);
    let answers = 0;
    nats.publish = (to, payload, options) => {
      const isReply = to.startsWith("_INBOX.") && payload instanceof Uint8Array;
      if (isReply) {
        answers += 1;
        publish(to, new Uint8Array(0));
        publish(to, randomBytes(100));
        publish(to, mutated(payload));
      }
      publish(to, payload, options);
      if (!isReply) return;
      publish(to, payload, options);
      publish(to, text.encode("{}"));
    };
    const calls = Array.from({ length: 300 }, (_, n) => client.rpc.work.count({ n }, { timeout: 5_000 }));
    for (const [n, call] of calls.entries()) expect((await call).orThrow().n).toBe(n);
    expect((await client.rpc.work.slow({ n: 1, ms: 40 })).orThrow().n).toBe(1);
    await eventually(() => answers > 0);
    expect(unhandled.seen).toEqual([]);
  });
});
