import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { fromBase64Url, toBase64Url } from "@trellis/protocol";
import {
  connectClientWith,
  connectServiceWith,
  nodePlatform,
  nodePort,
  type Platform,
} from "@trellis/runtime/node";
import { eventually, type TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Attacker, dialRaw } from "./attacker.ts";
import { bootstrap, makeKeys } from "./http.ts";
import { logTrap } from "./logs.ts";
import { shop, startScene, startStock, startVault, stock, stockService, warehouse } from "./scene.ts";

const log = logTrap();
/** What must be nowhere, by what it is. */
const secrets = new Map<string, Uint8Array | string>();
/** Errors that an application got. */
const errors: unknown[] = [];
/** Written past the logger. */
let printed = "";

/** The platform as it is, but for a note of every secret that is made or used on it. */
const watched: Platform = {
  ...nodePlatform,
  port: {
    ...nodePort,
    hkdf: (input) => note("derived key", nodePort.hkdf(input)),
    ed25519: {
      verify: nodePort.ed25519.verify,
      verifyLater: nodePort.ed25519.verifyLater,
      keyPair: (given) => {
        const { seed, publicKey, sign } = nodePort.ed25519.keyPair(given);
        note("signing seed", seed);
        return { seed, publicKey, sign: (data) => note("signature", sign(data)) };
      },
    },
    x25519: {
      keyPair: (given) => {
        const { secret, publicKey, shared } = nodePort.x25519.keyPair(given);
        note("exchange secret", secret);
        return { secret, publicKey, shared: (peer) => note("shared secret", shared(peer)) };
      },
    },
  },
};

function note<T extends Uint8Array>(what: string, bytes: T): T {
  secrets.set(`${what} ${secrets.size}`, Uint8Array.from(bytes));
  return bytes;
}

/** A secret as it would be written down. */
function spellings(secret: Uint8Array | string): string[] {
  if (typeof secret === "string") return [secret];
  const bytes = Buffer.from(secret);
  return [
    bytes.toString("base64url"),
    bytes.toString("base64").replace(/=+$/, ""),
    bytes.toString("hex"),
    bytes.toString("latin1"),
  ];
}

function found(text: string): string[] {
  return [...secrets]
    .filter(([, secret]) => spellings(secret).some((spelt) => text.includes(spelt)))
    .map(([what]) => what);
}

let trellis: TestTrellis;

beforeAll(async () => {
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, "write").mockImplementation((text) => {
      printed += String(text);
      return true;
    });
  }
  try {
    await scene();
  } finally {
    vi.restoreAllMocks();
  }
});
afterAll(() => trellis?.stop());

/** Everything that a platform and its processes go through on a bad day. */
async function scene(): Promise<void> {
  trellis = await startScene({ controlPlane: { log, say: (step) => log.info({}, step) } });
  secrets.set("dev token", trellis.devToken);
  const file = JSON.parse(await readFile(join(trellis.dir, "keys.json"), "utf8")) as unknown;
  noteTexts("keys.json", file);
  const options = { platform: { port: watched.port }, runtime: { log } };
  const provider = await startStock(trellis, options);
  await startVault(trellis, options);
  for (const epoch of [1, 2]) {
    note(
      "route secret",
      trellis.controlPlane.plane.keys.routeKey(provider.service.auth.deployment, epoch).secret,
    );
  }
  const client = await trellis.client(warehouse, options);
  await client.rpc.stock.count("payload-that-is-private").orThrow();
  secrets.set("payload", "payload-that-is-private");
  errors.push(await client.rpc.stock.count("none"));
  // @ts-expect-error: a caller without types
  errors.push(await client.rpc.stock.count({ card: "payload-that-is-private" }));

  await refusedConnects();
  await refusedBootstraps();
  await badFrames();
  await trellis.restartNats({ kill: true });
  await eventually(async () => (await client.rpc.stock.count("back", { timeout: 1_000 })).isOk(), {
    timeout: 15_000,
  });
  await losses(client.connection);
}

function noteTexts(what: string, value: unknown): void {
  if (typeof value === "string" && value.length > 20) {
    secrets.set(`${what} ${secrets.size}`, value);
    const bytes = fromBase64Url(value);
    if (bytes !== undefined) note(what, bytes);
  } else if (typeof value === "object" && value !== null) {
    for (const member of Object.values(value)) noteTexts(what, member);
  }
}

async function refusedConnects(): Promise<void> {
  const { keys, answer } = await Attacker.join(trellis, shop);
  note("signing seed", keys.session.seed);
  const badSignature = nodePort.random(64);
  note("nonce signature", badSignature);
  await dialRaw(keys, answer, { sign: () => badSignature }).catch((error: unknown) => errors.push(error));
  const badToken = toBase64Url(nodePort.random(32));
  secrets.set("connect token", badToken);
  await dialRaw(keys, answer, { token: badToken }).catch((error: unknown) => errors.push(error));
}

async function refusedBootstraps(): Promise<void> {
  const wrongToken = toBase64Url(nodePort.random(32));
  secrets.set("wrong dev token", wrongToken);
  const seed = toBase64Url(nodePort.random(32));
  secrets.set("unknown seed", seed);
  const badSeed = `${"not-base64!".repeat(3)}`;
  secrets.set("malformed seed", badSeed);
  const at = { root: trellis.root, trellisUrl: trellis.url, timeout: 1_000, runtime: { log } };
  const discover = (devToken?: string) => () => ({
    production: true,
    ...(devToken === undefined ? {} : { devToken }),
  });
  const attempts = [
    [{ ...at }, wrongToken],
    [{ ...at, seed }, undefined],
    [{ ...at, seed: badSeed }, undefined],
    [{ ...at, root: toBase64Url(nodePort.random(32)) }, trellis.devToken],
    [{ ...at, trellisUrl: "http://127.0.0.1:1" }, trellis.devToken],
  ] as const;
  const outcomes = attempts.flatMap(([args, devToken]) => {
    const deps = { platform: { ...watched, discover: discover(devToken) } };
    return [
      connectClientWith({ participant: shop, ...args }, deps).match({
        ok: () => "connected",
        err: (error) => error,
      }),
      connectServiceWith({ participant: stockService, ...args }, deps).match({
        ok: () => "connected",
        err: (error) => error,
      }),
    ];
  });
  errors.push(...(await Promise.all(outcomes)));
  const keys = makeKeys();
  for (const changes of [
    { identityProofKey: makeKeys().identity },
    { issuedAt: 5 },
    { token: wrongToken },
    { tamper: () => "[".repeat(1_000) },
    { headers: { "x-forwarded-for": "1.2.3.4" } },
  ]) {
    errors.push((await bootstrap(trellis, { keys, participant: shop }, changes)).text);
  }
}

async function badFrames(): Promise<void> {
  await using attacker = await Attacker.join(trellis, warehouse);
  const shot = attacker.shot(stock.id, "Stock.Count", "payload-that-is-private");
  for (let at = 0; at < shot.bytes.length; at += 3) {
    const bytes = shot.bytes.slice();
    bytes[at] = (bytes[at] ?? 0) ^ 0xff;
    attacker.fire({ ...shot, bytes });
  }
  await attacker.ask(shot);
  attacker.nats.publish("$JS.API.INFO", "");
  await attacker.nats.flush();
}

/** Revoked, disabled, and what an application is told of it. */
async function losses(connection: { readonly closed: Promise<Error | undefined> }): Promise<void> {
  const { core } = trellis.controlPlane;
  const { connections } = (await core["Core.Connections.List"]({})).orThrow();
  const apps = connections.filter((row) => row.participant.id === warehouse.id && row.state === "connected");
  for (const { id } of apps) await core["Core.Connections.Kick"]({ id, revoke: true });
  errors.push(await connection.closed);
  const { instances } = (await core["Core.Instances.List"]({})).orThrow();
  for (const { id } of instances) errors.push(await core["Core.Instances.Disable"]({ id }));
}

describe("a secret", () => {
  it("is noted by this test in all its kinds, or the rest would prove nothing", () => {
    const kinds = new Set([...secrets.keys()].map((what) => what.replace(/ \d+$/, "")));
    for (const kind of [
      "signing seed",
      "exchange secret",
      "derived key",
      "shared secret",
      "signature",
      "keys.json",
    ]) {
      expect(kinds).toContain(kind);
    }
    expect(log.lines.length).toBeGreaterThan(50);
    expect(log.text()).toMatch(/revoked/);
    expect(log.text()).toMatch(/nonce_signature_invalid/);
    expect(errors.length).toBeGreaterThan(15);
    expect(errors).not.toContain("connected");
    // The scan finds what is there.
    const [seed] = [...secrets.values()];
    expect(found(`x ${spellings(seed ?? "").at(0)} y`).length).toBeGreaterThan(0);
  });

  it("stands in no log line", () => {
    expect(found(log.text())).toEqual([]);
  });

  it("is not printed past the logger", () => {
    expect(found(printed)).toEqual([]);
  });

  it("is not in an error that an application gets, however it looks at it", () => {
    const looks = errors.flatMap((error) => [
      inspect(error, { depth: 8, showHidden: true }),
      JSON.stringify(error) ?? "",
    ]);
    expect(found(looks.join("\n"))).toEqual([]);
  });

  it("is shown by no part of the control plane that somebody prints", () => {
    const { plane } = trellis.controlPlane;
    for (const part of [plane.keys, plane.statements, plane.bootstrap.issue.keys]) {
      const fromFile = found(`${inspect(part, { depth: 6, showHidden: true })} ${JSON.stringify(part)}`);
      expect(fromFile).toEqual([]);
    }
  });

  it("is in no file but the key file, and that is the owner's alone", async () => {
    const files = await readdir(trellis.dir, { recursive: true, withFileTypes: true });
    const holding: string[] = [];
    for (const entry of files.filter((each) => each.isFile())) {
      const path = join(entry.parentPath, entry.name);
      if (entry.name === "keys.json") {
        expect((await stat(path)).mode & 0o777).toBe(0o600);
        continue;
      }
      const content = await readFile(path, "latin1");
      // Signed statements are public, and a signature of one is not a proof of anything.
      const inFile = found(content).filter((what) => !what.startsWith("signature"));
      if (inFile.length > 0) holding.push(`${entry.name}: ${inFile.join(", ")}`);
    }
    expect(holding).toEqual([]);
  });
});
