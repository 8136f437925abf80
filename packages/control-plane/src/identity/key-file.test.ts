import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { portablePort } from "@trellis/protocol/portable";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadKeyFile } from "./key-file.ts";
import { KeyRing } from "./key-ring.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "trellis-keys-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("key file", () => {
  it("is made once, private under any umask, and loaded thereafter", () => {
    const path = join(folder, "state", "keys.json");
    const before = process.umask(0o000);
    const made = loadKeyFile(path, 1000);
    process.umask(before);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(folder, "state"))).toEqual(["keys.json"]);
    expect(loadKeyFile(path, 2000)).toEqual(made);
  });

  it("is refused when others can read it or when it is damaged, without a word of its content", () => {
    const path = join(folder, "keys.json");
    const { root } = loadKeyFile(path, 1000);
    chmodSync(path, 0o644);
    expect(() => loadKeyFile(path, 1000)).toThrow(/chmod 600/);
    chmodSync(path, 0o600);
    writeFileSync(path, readFileSync(path, "utf8").slice(0, -5));
    const failure = inspect(capture(() => loadKeyFile(path, 1000)));
    expect(failure).toMatch(/damaged/);
    expect(failure).not.toContain(root);
  });
});

describe("key ring", () => {
  it("shows no secret when inspected or serialised", () => {
    const file = loadKeyFile(join(folder, "keys.json"), 1000);
    const ring = new KeyRing(portablePort, file);
    const shown = inspect({ ring }, { depth: 10, showHidden: true }) + JSON.stringify({ ring });
    for (const secret of [file.root, file.routeMaster, file.issuers[0]?.seed, ...Object.values(file.nats)]) {
      expect(shown).not.toContain(secret);
    }
  });

  it("derives one route key for each deployment and epoch", () => {
    const ring = new KeyRing(portablePort, loadKeyFile(join(folder, "keys.json"), 1000));
    const key = (deployment: string, epoch: number) => ring.routeKey(deployment, epoch).publicKey;
    expect(key("D1", 1)).toEqual(key("D1", 1));
    expect(key("D1", 1)).not.toEqual(key("D1", 2));
    expect(key("D1", 1)).not.toEqual(key("D2", 1));
  });
});

function capture(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}
