import { once } from "node:events";
import { createServer, connect as dial, type Server, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eventually } from "./eventually.ts";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import { type LeakWatch, watchLeaks } from "./leaks.ts";

let server: Server;
let target: { host: string; port: number };
let watch: LeakWatch;
let proxy: FaultProxy;

beforeAll(async () => {
  // Half-closed on purpose: an orderly end must pass after the data.
  server = createServer((socket) => socket.on("error", () => undefined).pipe(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  target = { host: "127.0.0.1", port: address.port };
});
afterAll(() => void server.close());
beforeEach(async () => {
  watch = await watchLeaks();
  proxy = await startFaultProxy({ target });
});
afterEach(async () => {
  await proxy.stop();
  await watch.expectNoLeaks();
});

async function open(): Promise<Socket> {
  const socket = dial(proxy.port, proxy.host);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

/** `once` would reject on the error that a reset gives first. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

async function echo(socket: Socket, data: string): Promise<number> {
  const started = performance.now();
  let got = "";
  const done = new Promise<void>((resolve) => {
    const take = (chunk: Buffer) => {
      got += chunk.toString("latin1");
      if (got.length < data.length) return;
      socket.off("data", take);
      resolve();
    };
    socket.on("data", take);
  });
  socket.write(data);
  await done;
  expect(got === data).toBe(true);
  return performance.now() - started;
}

describe("startFaultProxy", () => {
  test("passes everything in order, large and small, and an orderly end", async () => {
    const socket = await open();
    expect(await echo(socket, "hello")).toBeLessThan(500);
    await echo(socket, "0123456789".repeat(500_000));
    expect(proxy.connections()).toBe(1);
    socket.end();
    await closed(socket);
    await eventually(() => proxy.connections() === 0);
  });

  test("delay and throttle", async () => {
    const socket = await open();
    proxy.delay(50);
    expect(await echo(socket, "x")).toBeGreaterThanOrEqual(99);
    proxy.delay(0);
    proxy.throttle(100_000);
    const took = await echo(socket, "x".repeat(30_000));
    expect(took).toBeGreaterThan(200);
    expect(took).toBeLessThan(2_000);
    proxy.throttle(Number.POSITIVE_INFINITY);
    expect(await echo(socket, "x".repeat(300_000))).toBeLessThan(1_000);
    socket.destroy();
  });

  test("a partition holds everything back, new connections too, and heals", async () => {
    const socket = await open();
    await echo(socket, "x");
    proxy.blackhole(true);
    let passed = false;
    const waiting = echo(socket, "later").then(() => {
      passed = true;
    });
    const fresh = await open();
    const freshEcho = echo(fresh, "fresh");
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(passed).toBe(false);
    proxy.blackhole(false);
    await Promise.all([waiting, freshEcho]);
    socket.destroy();
    fresh.destroy();
  });

  test("cut resets, refuse refuses, and both end", async () => {
    const socket = await open();
    const reset = closed(socket);
    proxy.cut();
    await reset;
    await proxy.refuse(true);
    const refused = dial(proxy.port, proxy.host);
    const [error] = await once(refused, "error");
    expect(error).toMatchObject({ code: "ECONNREFUSED" });
    await proxy.refuse(false);
    const again = await open();
    await echo(again, "back");
    const ended = closed(again);
    await proxy.stop();
    await ended;
  });
});
