import { access } from "node:fs/promises";
import { connect } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { eventually } from "./eventually.ts";
import { type LeakWatch, watchLeaks } from "./leaks.ts";
import { startNats } from "./start-nats.ts";
import { stressStartStop } from "./stress-start-stop.ts";

let watch: LeakWatch;
beforeEach(async () => {
  watch = await watchLeaks();
});
afterEach(() => watch.expectNoLeaks());

describe("startNats", () => {
  test("serves, restarts on the same ports with the data, and removes its folder", async () => {
    const nats = await startNats();
    const nc = await connect({ servers: nats.url, reconnectTimeWait: 20, maxReconnectAttempts: -1 });
    const create = { name: "S", subjects: ["s"], storage: "file" };
    await nc.request("$JS.API.STREAM.CREATE.S", JSON.stringify(create));
    await nc.request("s", "kept");
    const { pid, port } = nats;
    await nats.restart();
    await nats.restart({ kill: true });
    expect([nats.port, nats.pid === pid]).toEqual([port, false]);
    const info = await eventually(() => nc.request("$JS.API.STREAM.INFO.S", "", { timeout: 500 }));
    expect(info.json()).toMatchObject({ state: { messages: 1 } });
    await nc.close();
    await nats.stop();
    await nats.stop();
    expect(await nats.closed).toEqual({ reason: "stopped", code: 0 });
    await expect(access(nats.dir)).rejects.toThrow("ENOENT");
  });

  test("kill leaves it down until restart", async () => {
    await using nats = await startNats({ config: "max_connections: 7" });
    await nats.kill();
    expect(nats.pid).toBeUndefined();
    await expect(connect({ servers: nats.url, reconnect: false })).rejects.toThrow();
    await nats.restart();
    const nc = await connect({ servers: nats.url });
    await nc.close();
  });

  test("refused configuration says where", async () => {
    await expect(startNats({ config: "no_such_field: 1" })).rejects.toMatchObject({
      code: "trellis.nats.config_refused",
      message: expect.stringContaining("no_such_field"),
    });
  });

  test("starts and stops in every order", async () => {
    await stressStartStop(
      () => {
        const abort = new AbortController();
        let starting: ReturnType<typeof startNats> | undefined;
        return {
          start: async () => {
            starting = startNats({ signal: abort.signal });
            await starting;
          },
          stop: async () => {
            abort.abort(new Error("stopped"));
            const nats = await starting?.catch(() => undefined);
            await nats?.stop();
          },
        };
      },
      { rounds: 1, concurrency: 4 },
    );
  });
});
