import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { REPLY_OVERHEAD, REQUEST_OVERHEAD, RESULT_OVERHEAD } from "@trellis/protocol";
import { eventually, startTrellis, type TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Odd, workApp, workService } from "./contract.ts";
import { timed, type WorkClient, watchUnhandled } from "./kit.ts";

const limit = 64 * 1024;
/** What JSON adds to a text, and to the text of `Work.Echo`. */
const quotes = 2;
const echoed = '{"text":""}'.length;
/** A call without trace: flags, request id, remaining time, length. */
const callOverhead = 25;

/** Gives the broker another limit; it bounces its clients. */
async function limitPayload(trellis: TestTrellis, bytes: number): Promise<void> {
  const { nats } = trellis.controlPlane;
  if (nats?.pid === undefined) throw new Error("no managed nats-server");
  const file = join(nats.dir, "nats.conf");
  await writeFile(file, (await readFile(file, "utf8")).replace(/max_payload: \S+/, `max_payload: ${bytes}`));
  process.kill(nats.pid, "SIGHUP");
  await eventually(async () => (await maxPayload(nats.url)) === bytes);
}

async function maxPayload(url: string): Promise<number | undefined> {
  const text = await new Promise<string>((resolve, reject) => {
    const { port } = new URL(url);
    import("node:net").then(({ createConnection }) => {
      const socket = createConnection(Number(port), "127.0.0.1");
      socket.once("data", (data) => {
        socket.destroy();
        resolve(data.toString());
      });
      socket.once("error", reject);
    }, reject);
  });
  return (JSON.parse(text.slice("INFO ".length)) as { max_payload?: number }).max_payload;
}

describe("a message over the broker's limit", () => {
  let trellis: TestTrellis;
  let client: WorkClient;
  const unhandled = watchUnhandled();

  beforeAll(async () => {
    trellis = await startTrellis();
    await limitPayload(trellis, limit);
    await trellis.service(
      workService,
      ({ handle }) => {
        handle.rpc.work.echo(({ input }) => ({ text: input.text }));
        handle.rpc.work.text(({ input }) => "x".repeat(input.length));
        handle.rpc.work.fail(({ input }) => {
          throw new Odd({ data: { n: 1, text: "x".repeat(Number(input.how)) } });
        });
      },
      { telemetry: false },
    );
    client = await trellis.client(workApp, { telemetry: false });
  });
  afterAll(() => trellis.stop());

  const small = async () => expect((await client.rpc.work.echo({ text: "small" })).isOk()).toBe(true);

  it("carries a reply of exactly the limit, and answers one over it at once with a typed error", async () => {
    const room = limit - REPLY_OVERHEAD - RESULT_OVERHEAD - quotes;
    for (const length of [room - 1, room])
      expect((await client.rpc.work.text({ length })).orThrow()).toHaveLength(length);
    for (const length of [room + 1, limit - 1, limit, limit + 1, 20 * limit]) {
      const { ms, value } = await timed(() => client.rpc.work.text({ length }, { timeout: 5_000 }));
      expect(value.isErr() && value.error).toMatchObject({
        type: "TransportError",
        code: "trellis.rpc.reply_too_large",
        message: expect.stringContaining("too large"),
      });
      expect(ms).toBeLessThan(500);
      await small();
    }
  });

  it("carries a request of exactly the limit, and refuses one over it before it is sent", async () => {
    const room = limit - REQUEST_OVERHEAD - callOverhead - echoed;
    const fits = await client.rpc.work.echo({ text: "x".repeat(room - 1_000) });
    expect(fits.isOk()).toBe(true);
    // The answer would be smaller than the request: only the request's limit is met.
    expect((await client.rpc.work.fail({ how: "" + "0".repeat(room - 1_000) })).isErr()).toBe(true);
    for (const over of [1, 100, 10 * limit]) {
      const { ms, value } = await timed(() => client.rpc.work.echo({ text: "x".repeat(room + over) }));
      expect(value.isErr() && value.error.type).toBe("ValidationError");
      expect(ms).toBeLessThan(500);
      await small();
    }
  });

  it("counts bytes, not characters", async () => {
    const text = "€".repeat(limit / 3);
    const refused = await client.rpc.work.echo({ text });
    expect(refused.isErr() && refused.error.type).toBe("ValidationError");
    expect((await client.rpc.work.echo({ text: text.slice(200) })).isOk()).toBe(true);
  });

  it("answers an oversize declared error by the typed error, never by itself again", async () => {
    expect((await client.rpc.work.fail({ how: "100" })).isErr()).toBe(true);
    const { ms, value } = await timed(() => client.rpc.work.fail({ how: String(2 * limit) }));
    expect(value.isErr() && value.error).toMatchObject({ code: "trellis.rpc.reply_too_large" });
    expect(ms).toBeLessThan(500);
    await small();
  });

  it("never gathers more into one frame than the broker takes", async () => {
    const text = "x".repeat(limit / 3);
    const calls = Array.from({ length: 40 }, () => client.rpc.work.echo({ text }, { timeout: 5_000 }));
    for (const call of calls) expect((await call).orThrow().text).toBe(text);
    const tiny = Array.from({ length: 4_000 }, (_, n) =>
      client.rpc.work.echo({ text: `${n}`.padEnd(1_000) }),
    );
    for (const call of tiny) expect((await call).isOk()).toBe(true);
  });

  it("follows a limit that changes under a live connection", async () => {
    await limitPayload(trellis, limit / 2);
    await eventually(() => client.connection.status.phase === "connected");
    const text = "x".repeat(limit * 0.75);
    await eventually(async () => {
      const refused = await client.rpc.work.echo({ text }, { timeout: 1_000 });
      expect(refused.isErr() && refused.error.type).toBe("ValidationError");
    });
    await small();
    expect(unhandled.seen).toEqual([]);
    unhandled[Symbol.dispose]();
  });
});
