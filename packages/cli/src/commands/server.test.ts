import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { findNatsServer, ManagedNats } from "@trellis/control-plane/nats";
import { TrellisService } from "@trellis/runtime/service";
import { afterAll, describe, expect, it } from "vitest";
import { translatorService } from "../../../../examples/01-hello/contracts/translator.ts";
import { makeFolder, runCli, runShell, startCli, startFile } from "../cli.test-kit.ts";
import { connectCore } from "../platform/connect-core.ts";

const hello = resolve(import.meta.dirname, "../../../../examples/01-hello");
const slow = 240_000;

const brokers: ManagedNats[] = [];
afterAll(() => Promise.all(brokers.map((nats) => nats.stop())));

function project(): string {
  const folder = makeFolder("server here");
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** A nats-server as an operator runs it: Trellis' file is included, nothing of it is ours. */
async function ownNats(folder: string): Promise<ManagedNats> {
  const { path: binary } = await findNatsServer({ fetch: false });
  const extra = readFileSync(join(folder, "trellis-data", "trellis.nats.conf"), "utf8");
  const accounts = extra.slice(extra.indexOf("accounts {"));
  const nats = await ManagedNats.start({
    binary,
    dir: join(folder, "own nats"),
    config: { extra: accounts },
  });
  brokers.push(nats);
  return nats;
}

describe("trellis server", () => {
  it(
    "takes a service from its contract to an answered call, and stops it again",
    async () => {
      const cwd = project();
      const made = await runCli(["server", "init"], { cwd });
      expect(made).toMatchObject({ code: 0, stderr: "" });
      const credential = join(cwd, "trellis-data", "admin.credential.json");
      expect(statSync(credential).mode & 0o777).toBe(0o600);
      const printed = await runCli(["nats", "config"], { cwd });
      expect(printed.stdout).toContain("auth_callout");
      expect(printed.stdout).not.toMatch(/\bS[UAX][A-Z2-7]{56}\b/);

      const nats = await ownNats(cwd);
      const server = startCli(["server", "--nats", nats.url, "--http-port", "0"], { cwd });
      const [, url = "", root] = await server.until(/running {2}(\S+) {2}root (\S+)/);
      // The port was free for all; a real one is fixed, and stands in the credential.
      const moved = { ...JSON.parse(readFileSync(credential, "utf8")), url };
      expect(moved.root).toBe(root);
      writeFileSync(credential, JSON.stringify(moved));
      const env = { TRELLIS_CREDENTIAL: credential };
      const trellis = async (...args: string[]) => {
        const ran = await runCli(args, { cwd, env });
        expect(ran, `trellis ${args.join(" ")}`).toMatchObject({ code: 0 });
        return ran.stdout;
      };

      expect(await trellis("participants", "install", join(hello, "contracts/translator.ts"))).toContain(
        "+ hello.translator-service  revision 1",
      );
      const unknown = await runCli(["svc", "provision", "hello.translator-service"], { cwd, env });
      expect(unknown).toMatchObject({ code: 5, stdout: "" });
      await trellis("svc", "create", "hello.translator-service");
      await trellis("svc", "provision", "hello.translator-service", "--out", "translator.env");
      expect(statSync(join(cwd, "translator.env")).mode & 0o777).toBe(0o600);
      const again = await runCli(["svc", "provision", "hello.translator-service", "--json"], { cwd, env });
      expect(JSON.parse(again.stdout).environment.TRELLIS_SEED).toMatch(/^[\w-]{43}$/);

      const environment = Object.fromEntries(
        readFileSync(join(cwd, "translator.env"), "utf8")
          .trim()
          .split("\n")
          .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
      );
      const file = "examples/01-hello/services/translator.ts";
      const service = startFile(file, { env: environment });
      await service.until(/Connection connected/);
      expect(await trellis("call", "Words.Translate", '{"word":"hello","language":"it"}')).toContain("Ciao");
      expect(await trellis("services")).toContain("hello.translator-service");
      expect(await trellis("svc", "ls")).toMatch(/hello\.translator-service +enabled +2 +1/);

      await trellis("svc", "disable", "hello.translator-service", "--reason", "a test");
      expect(await service.exited).not.toBe(0);
      const refused = startFile(file, { env: environment });
      expect(await refused.exited).not.toBe(0);
      expect(refused.stderr).toContain("trellis.bootstrap.instance_disabled");
      await trellis("svc", "enable", "hello.translator-service");
      const back = startFile(file, { env: environment });
      await back.until(/Connection connected/);
      await back.end("SIGTERM");
      expect(await server.end("SIGTERM")).toBe(0);
    },
    slow,
  );

  it(
    "gives nothing of its own API to whom it was not granted, and a refusal destroys no credential",
    async () => {
      const cwd = project();
      await runCli(["server", "init"], { cwd });
      const nats = await ownNats(cwd);
      const server = startCli(["server", "--nats", nats.url, "--http-port", "0", "--json"], { cwd });
      const [, url = ""] = await server.until(/"url":"([^"]+)"/);
      const credential = join(cwd, "trellis-data", "admin.credential.json");
      const admin = { ...JSON.parse(readFileSync(credential, "utf8")), url };
      const text = JSON.stringify(admin);
      writeFileSync(credential, text);
      const ran = (args: string[], file = credential) =>
        runCli([...args, "--credential", file, "--json"], { cwd });

      const strange = join(cwd, "strange.json");
      writeFileSync(strange, JSON.stringify({ ...admin, seed: Buffer.alloc(32, 7).toString("base64url") }), {
        mode: 0o600,
      });
      const unknown = await ran(["participants", "ls"], strange);
      expect(unknown).toMatchObject({ code: 4, stdout: "" });
      expect(JSON.parse(unknown.stderr).error.message).toBeTypeOf("string");
      const other = join(cwd, "other.json");
      writeFileSync(other, JSON.stringify({ ...admin, root: Buffer.alloc(32, 7).toString("base64url") }));
      const wrong = await ran(["participants", "ls"], other);
      expect(wrong.code).toBe(4);
      expect((await ran(["svc", "disable", "trellis.cli"])).code).toBe(4);
      expect((await ran(["participants", "ls", "--all"])).code).toBe(0);
      expect(readFileSync(credential, "utf8")).toBe(text);
      await server.end();
      const away = await ran(["participants", "ls"]);
      expect(away.code).toBe(3);
      expect(readFileSync(credential, "utf8")).toBe(text);
    },
    slow,
  );

  it(
    "that is killed is missed by nobody who is connected, and goes on where it was when it is started again",
    async () => {
      const cwd = project();
      await runCli(["server", "init"], { cwd });
      const nats = await ownNats(cwd);
      const credential = join(cwd, "trellis-data", "admin.credential.json");
      const running = /running {2}(\S+) {2}root (\S+)/;
      const first = startCli(["server", "--nats", nats.url, "--http-port", "0"], { cwd });
      const [, url = ""] = await first.until(running);
      writeFileSync(credential, JSON.stringify({ ...JSON.parse(readFileSync(credential, "utf8")), url }));
      const { root, seed } = JSON.parse(readFileSync(credential, "utf8")) as { root: string; seed: string };
      const connect = () => connectCore({ url, root, seed, source: credential, devToken: undefined });
      const admin = await connect();
      const installed = { artifact: { ...translatorService.artifact } };
      expect((await admin.rpc.core.participantsInstall(installed).orThrow()).changed).toBe(true);
      const id = translatorService.id;
      await admin.rpc.core.deploymentsCreate({ participant: id }).orThrow();
      const instance = await admin.rpc.core.instancesProvision({ deployment: id }).orThrow();
      const service = await TrellisService.connect({
        participant: translatorService,
        trellisUrl: url,
        root,
        seed: instance.seed ?? "",
        runtime: { log: false },
      }).orThrow();
      service.handle.rpc.words.translate(() => ({ word: "Ciao" }));
      await service.start();

      await first.end("SIGKILL");
      const port = new URL(url).port;
      const second = startCli(["server", "--nats", nats.url, "--http-port", port], { cwd });
      expect((await second.until(running))[1]).toBe(url);
      expect(service.connection.status.phase).toBe("connected");
      // The client of before calls the platform that came after; a new one finds everything as it was.
      expect((await admin.rpc.core.participantsInstall(installed).orThrow()).changed).toBe(false);
      const again = await connect();
      const { connections } = await again.rpc.core.connectionsList({ deployment: id }).orThrow();
      expect(connections).toMatchObject([{ instance: instance.instance.id, state: "connected" }]);
      const ended = new Promise<string | undefined>((settle) => {
        service.connection.subscribe((status) => {
          if (status.phase === "error") settle(status.reason);
        });
      });
      await again.rpc.core.deploymentsDisable({ id }).orThrow();
      expect(await ended).toBe("trellis.bootstrap.instance_disabled");
      await Promise.all([admin.close(), again.close(), service.stop()]);
      expect(await second.end("SIGTERM")).toBe(0);
    },
    slow,
  );

  it(
    "and trellis dev keep to their own data",
    async () => {
      const cwd = project();
      const dev = startCli(["dev"], { cwd });
      await dev.until(/platform {2}/);
      await dev.end();
      const data = join(".trellis", "data");
      const server = await runCli(["server", "--data", data, "--nats", "nats://127.0.0.1:4"], { cwd });
      expect(server.code).toBe(2);
      expect(server.stderr).toContain("dev mode");
      const init = await runCli(["server", "init", "--data", data], { cwd });
      expect(init.code).toBe(2);
      expect(init.stderr).toContain("dev mode");

      const other = project();
      mkdirSync(join(other, ".trellis"));
      await runCli(["server", "init", "--data", data], { cwd: other });
      const turned = await runCli(["dev"], { cwd: other });
      expect(turned.code).toBe(2);
      expect(turned.stderr).toContain("server mode");
    },
    slow,
  );

  it(
    "says what is missing",
    async () => {
      const cwd = project();
      const noNats = await runCli(["server"], { cwd });
      expect(noNats).toMatchObject({ code: 2, stdout: "" });
      expect(noNats.stderr).toContain("--nats");
      const noKeys = await runCli(["server", "--nats", "nats://127.0.0.1:4222"], { cwd });
      expect(noKeys.stderr).toContain("trellis server init");
      await runShell("umask 000; $TRELLIS server init", { cwd });
      const twice = await runCli(["server", "init"], { cwd });
      expect(twice).toMatchObject({ code: 2, stdout: "" });
      expect(twice.stderr).toContain("exists already");
      expect(await runShell("git init -q . && git add --all && git ls-files", { cwd })).toMatchObject({
        code: 0,
        stdout: "",
      });
      for (const file of ["admin.credential.json", "keys.json"])
        expect(statSync(join(cwd, "trellis-data", file)).mode & 0o077).toBe(0);
    },
    slow,
  );
});
