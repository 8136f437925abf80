import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findNatsServer } from "./locate.ts";
import { ManagedNats } from "./server.ts";

const ORIGIN = "http://127.0.0.1:3000";
let dir: string;
let nats: ManagedNats;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "trellis-config-"));
  const { path } = await findNatsServer();
  nats = await ManagedNats.start({ binary: path, dir, config: { websocketOrigins: [ORIGIN] } });
});
afterAll(async () => {
  await nats?.stop();
  await rm(dir, { recursive: true, force: true });
});

/** Status and extensions of a WebSocket handshake that asks for compression. */
function handshake(origin?: string): Promise<{ status: number; extensions: string | undefined }> {
  return new Promise((resolve, reject) => {
    const headers: Record<string, string> = {
      Connection: "Upgrade",
      Upgrade: "websocket",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": Buffer.alloc(16, 7).toString("base64"),
      "Sec-WebSocket-Extensions":
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
      ...(origin !== undefined && { Origin: origin }),
    };
    const upgrade = request({ host: "127.0.0.1", port: nats.websocketPort, headers, agent: false });
    upgrade.once("error", reject);
    upgrade.once("upgrade", (response, socket) => {
      socket.destroy();
      resolve({ status: 101, extensions: response.headers["sec-websocket-extensions"] });
    });
    upgrade.once("response", (response) => {
      response.resume();
      resolve({ status: response.statusCode ?? 0, extensions: undefined });
    });
    upgrade.end();
  });
}

describe("the WebSocket listener of the managed server", () => {
  test("never agrees to compression", async () => {
    expect(await handshake()).toEqual({ status: 101, extensions: undefined });
  });

  test("takes the listed origins and clients that are no browsers, refuses other pages", async () => {
    expect((await handshake(ORIGIN)).status).toBe(101);
    expect((await handshake("http://evil.example")).status).toBe(403);
    expect((await handshake("http://127.0.0.1:3001")).status).toBe(403);
  });
});
