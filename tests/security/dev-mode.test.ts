import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineService, use } from "@trellis/contract";
import { type ControlPlane, startControlPlane } from "@trellis/control-plane";
import { BOOTSTRAP_PATHS } from "@trellis/protocol";
import type { TestTrellis } from "@trellis/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type BootstrapChanges, bootstrap, type HttpAnswer, makeKeys, send, sendRaw } from "./http.ts";
import { startScene, stock, stockService, vault } from "./scene.ts";

let trellis: TestTrellis;

beforeAll(async () => {
  trellis = await startScene();
});
afterAll(() => trellis?.stop());

const refusal = ({ status, code }: HttpAnswer) => [status, code];

function ask(changes: BootstrapChanges = {}, keys = makeKeys()): Promise<HttpAnswer> {
  return bootstrap(trellis, { keys, participant: stockService }, changes);
}

/** An honest request goes through, whatever was refused just before it. */
afterEach(async () => {
  expect((await ask()).status).toBe(200);
});

describe("a development platform", () => {
  it("asks for its token", async () => {
    for (const token of [
      null,
      "",
      "x",
      "x".repeat(43),
      `${trellis.devToken}x`,
      trellis.devToken.slice(0, -1),
    ]) {
      const refused = await ask({ token });
      expect([...refusal(refused), refused.text.includes(trellis.devToken)]).toEqual([
        401,
        "trellis.bootstrap.dev_token_required",
        false,
      ]);
    }
    for (const authorization of [trellis.devToken, `Basic ${trellis.devToken}`, `Bearer  `, "Bearer"]) {
      expect((await ask({ token: null, headers: { authorization } })).status).toBe(401);
    }
  });

  it("does not serve a page of another origin, a name that was rebound to it, or a proxy", async () => {
    const { port: at } = new URL(trellis.url);
    const foreign = [
      { origin: "https://evil.example" },
      { origin: "null" },
      { origin: "http://127.0.0.1:1" },
      { origin: `http://127.0.0.1.evil.example:${at}` },
      { origin: `https://127.0.0.1:${at}` },
      { host: "evil.example" },
      { host: `evil.example:${at}` },
      { host: `127.0.0.1.evil.example:${at}` },
      { host: `localhost.evil.example:${at}` },
      { host: "0.0.0.0" },
      { host: `192.168.1.5:${at}` },
      { host: `[::2]:${at}` },
      { forwarded: "for=192.0.2.1" },
      { "x-forwarded-for": "192.0.2.1" },
      { "x-forwarded-host": "evil.example" },
      { "x-forwarded-proto": "https" },
      { "x-real-ip": "192.0.2.1" },
      { via: "1.1 proxy" },
    ];
    const served: unknown[] = [];
    for (const headers of foreign) {
      const answers = await Promise.all([
        ask({ headers }),
        send(`${trellis.url}${BOOTSTRAP_PATHS.wellKnown}`, { method: "GET", headers }),
      ]);
      for (const answer of answers) {
        if (answer.status !== 403 || answer.code !== "trellis.bootstrap.origin_refused") served.push(headers);
        expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
      }
    }
    expect(served).toEqual([]);
    for (const host of [`127.0.0.1:${at}`, `localhost:${at}`, `LOCALHOST:${at}`, `[::1]:${at}`]) {
      expect((await ask({ headers: { host } })).status).toBe(200);
    }
    expect((await ask({ headers: { origin: trellis.url } })).status).toBe(200);
  });

  it("answers no preflight that would let a foreign page go on", async () => {
    const answer = await send(`${trellis.url}${BOOTSTRAP_PATHS.service}`, {
      method: "OPTIONS",
      headers: {
        origin: "https://evil.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
      },
    });
    expect(answer.status).toBe(403);
    for (const name of Object.keys(answer.headers)) expect(name).not.toMatch(/^access-control-allow/);
  });

  it("takes one Host header, and it may not be missing", async () => {
    for (const hosts of ["", `Host: 127.0.0.1\r\nHost: evil.example\r\n`]) {
      const answer = await sendRaw(
        trellis.url,
        `GET ${BOOTSTRAP_PATHS.wellKnown} HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`,
      );
      expect(answer).toMatch(/^HTTP\/1\.1 40[03]/);
    }
    const asked = `GET ${BOOTSTRAP_PATHS.wellKnown} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`;
    expect(await sendRaw(trellis.url, asked)).toMatch(/^HTTP\/1\.1 200/);
  });
});

describe("what one development token installed", () => {
  const folders: string[] = [];
  const planes: ControlPlane[] = [];
  afterAll(async () => {
    await Promise.all(planes.map((plane) => plane.stop()));
    await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
  });

  it("is not replaced by another token, and never served by a server", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "trellis-takeover-"));
    folders.push(dataDir);
    const [mine, theirs] = ["m".repeat(43), "t".repeat(43)];
    const open = async (devToken: string) => {
      const plane = await startControlPlane({ dataDir, mode: "dev", devToken });
      planes.push(plane);
      return { plane, at: { url: plane.url, devToken } };
    };
    const keys = makeKeys();
    const first = await open(mine);
    expect((await bootstrap(first.at, { keys, participant: stockService })).status).toBe(200);
    await first.plane.stop();

    const changed = defineService("acme.stock", { implements: [stock], uses: [use(vault)] });
    const grown = defineService("acme.stock", { implements: [] });
    const second = await open(theirs);
    for (const participant of [stockService, changed, grown]) {
      const answer = await bootstrap(second.at, { keys: makeKeys(), participant });
      expect(refusal(answer)).toEqual([403, "trellis.bootstrap.denied"]);
    }
    // Nor by way of the instance that is there already.
    expect(refusal(await bootstrap(second.at, { keys, participant: grown }))).toEqual([
      403,
      "trellis.bootstrap.denied",
    ]);
    // That instance itself goes on, and so does the owner.
    expect((await bootstrap(second.at, { keys, participant: stockService }, { token: null })).status).toBe(
      200,
    );
    await second.plane.stop();
    const third = await open(mine);
    expect((await bootstrap(third.at, { keys: makeKeys(), participant: grown })).status).toBe(200);
    await third.plane.stop();

    await expect(startControlPlane({ dataDir, mode: "server" })).rejects.toThrow(/dev mode/);
  });

  it("does not exist in a server: no token counts, nothing is installed by connecting", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "trellis-server-"));
    folders.push(dataDir);
    await expect(startControlPlane({ dataDir, mode: "server", devToken: "x".repeat(43) })).rejects.toThrow(
      /dev token/i,
    );
    const plane = await startControlPlane({ dataDir, mode: "server" });
    planes.push(plane);
    expect(plane.devToken).toBeUndefined();
    for (const token of [null, trellis.devToken, "", "undefined", "null"]) {
      const at = { url: plane.url, devToken: "" };
      const answer = await bootstrap(at, { keys: makeKeys(), participant: stockService }, { token });
      expect(refusal(answer)).toEqual([404, "trellis.bootstrap.unknown_instance"]);
    }
    expect(
      await plane.core["Core.Participants.List"]({}).then((list) =>
        list.orThrow().participants.map(({ id }) => id),
      ),
    ).not.toContain("acme.stock");
    await plane.stop();
    await expect(startControlPlane({ dataDir, mode: "dev" })).rejects.toThrow(/server mode/);
    await expect(startControlPlane({ dataDir, mode: "dev", http: { host: "0.0.0.0" } })).rejects.toThrow(
      /loopback/,
    );
  });
});
