import { readFileSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { defineService, kv, store } from "@trellis/contract";
import type { ConnectedService } from "@trellis/runtime/service";
import { startTrellis, type TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeFolder, type RunOptions, runCli, startCli } from "../../cli.test-kit.ts";

const slow = 240_000;
const field = defineService("acme.field", {
  kv: { sites: kv({ value: Type.Object({ name: Type.String({ minLength: 1 }) }) }) },
  store: { photos: store({}) },
});

let trellis: TestTrellis;
let service: ConnectedService<typeof field>;
let folder: string;
beforeAll(async () => {
  trellis = await startTrellis();
  service = await trellis.service(field, () => undefined);
  for (const key of ["oslo", "rome"]) await service.kv.sites.put(key, { name: key }).orThrow();
  folder = makeFolder();
  await mkdir(folder, { recursive: true });
}, 60_000);
afterAll(() => trellis?.stop());

const run = (args: readonly string[], options: RunOptions = {}) =>
  runCli(args, { cwd: folder, ...options, env: trellis.env() });

describe.concurrent("trellis kv", () => {
  it(
    "lists, shows, writes and deletes",
    async () => {
      expect((await run(["kv", "ls"])).stdout).toContain("acme.field/sites");
      expect((await run(["kv", "ls", "acme.field/sites", "--prefix", "os"])).stdout).toBe("oslo\n");
      expect((await run(["kv", "get", "acme.field/sites", "oslo"])).stdout).toBe('{"name":"oslo"}\n');
      const put = await run(["kv", "put", "acme.field/sites", "paris", '{"name":"Paris"}', "--json"]);
      const { revision } = JSON.parse(put.stdout) as { revision: number };
      expect((await service.kv.sites.get("paris").orThrow())?.value).toEqual({ name: "Paris" });
      const stale = await run(["kv", "put", "acme.field/sites", "paris", '{"name":"P"}', "--revision", "0"]);
      expect(stale.code).toBe(6);
      expect(stale.stderr).toContain(`revision ${revision}`);
      expect((await run(["kv", "rm", "acme.field/sites", "paris"])).code).toBe(0);
      expect(await service.kv.sites.get("paris").orThrow()).toBeUndefined();
    },
    slow,
  );

  it(
    "says what could have been meant, and what does not fit",
    async () => {
      const bucket = await run(["kv", "get", "acme.field/site", "oslo"]);
      expect(bucket.code).toBe(5);
      expect(bucket.stderr).toContain("Did you mean acme.field/sites?");
      const key = await run(["kv", "get", "acme.field/sites", "oslp"]);
      expect(key.code).toBe(5);
      expect(key.stderr).toContain("Did you mean oslo?");
      const place = await run(["kv", "ls", "sites"]);
      expect(place).toMatchObject({ code: 2, stdout: "" });
      const wrong = await run(["kv", "put", "acme.field/sites", "x", '{"name":""}']);
      expect(wrong.code).toBe(6);
      expect(wrong.stderr).toContain("/name");
      const broken = await run(["kv", "put", "acme.field/sites", "x", "{name}"]);
      expect(broken.code).toBe(2);
      expect(broken.stderr).toContain("Quote it for the shell");
    },
    slow,
  );

  it(
    "watches until Ctrl-C",
    async () => {
      const args = ["kv", "watch", "acme.field/sites", "--prefix", "w", "--json"];
      const running = startCli(args, { cwd: folder, env: trellis.env() });
      await running.until(/"ready"/);
      await service.kv.sites.put("w1", { name: "one" }).orThrow();
      await running.until(/"value":\{"name":"one"\}/);
      await service.kv.sites.delete("w1").orThrow();
      await running.until(/"deleted"/);
      expect(await running.end("SIGINT")).toBe(0);
      expect(running.stderr).toBe("");
    },
    slow,
  );
});

describe.concurrent("trellis store", () => {
  it(
    "moves files there and back, whole",
    async () => {
      const bytes = Buffer.alloc(1_000_003, "trellis ");
      writeFileSync(join(folder, "film.bin"), bytes);
      const put = await run([
        "store",
        "put",
        "acme.field/photos",
        "film.bin",
        "a/film",
        "--type",
        "video/x",
        "--json",
      ]);
      expect(JSON.parse(put.stdout)).toMatchObject({
        key: "a/film",
        size: bytes.length,
        contentType: "video/x",
      });
      expect((await run(["store", "ls", "acme.field/photos"])).stdout).toMatch(
        /a\/film +976\.6 KiB +video\/x/,
      );
      expect((await run(["store", "get", "acme.field/photos", "a/film", "back.bin"])).code).toBe(0);
      expect(readFileSync(join(folder, "back.bin")).equals(bytes)).toBe(true);
      const piped = await run(["store", "put", "acme.field/photos", "-", "note"], { input: "hello" });
      expect(piped.code).toBe(0);
      expect((await run(["store", "get", "acme.field/photos", "note", "-"])).stdout).toBe("hello");
      expect((await run(["store", "rm", "acme.field/photos", "note"])).code).toBe(0);
      const gone = await run(["store", "get", "acme.field/photos", "a/flim"]);
      expect(gone.code).toBe(5);
      expect(gone.stderr).toContain("Did you mean a/film?");
      expect((await run(["store", "put", "acme.field/photos", "none.bin"])).code).toBe(2);
    },
    slow,
  );
});

describe.concurrent("trellis resources", () => {
  it(
    "lists them, and destroys what no contract declares",
    async () => {
      const listed = await run(["resources", "ls", "acme.field"]);
      expect(listed.stdout).toMatch(/acme\.field\/sites +kv +attached/);
      await trellis.service(
        defineService("acme.old", { kv: { gone: kv({ value: Type.String() }) } }),
        () => {},
      );
      const inUse = await run(["resources", "destroy", "acme.old/gone"]);
      expect(inUse.code).toBe(4);
      expect(inUse.stderr).toContain("--force");
      await trellis.service(defineService("acme.old", {}), () => {});
      const detached = JSON.parse(
        (await run(["resources", "ls", "--detached", "--json"])).stdout,
      ) as object[];
      expect(detached).toMatchObject([{ service: "acme.old", alias: "gone", state: "detached" }]);
      expect((await run(["resources", "destroy", "acme.old/gone"])).stdout).toContain(
        "destroyed kv acme.old/gone",
      );
      expect((await run(["resources", "destroy", "acme.old/gone"])).code).toBe(5);
    },
    slow,
  );

  it(
    "explain themselves",
    async () => {
      for (const noun of ["kv", "store", "resources"]) {
        const help = await run([noun, "--help"]);
        expect(help.code).toBe(0);
        expect(help.stdout).toContain("ls");
      }
    },
    slow,
  );
});
