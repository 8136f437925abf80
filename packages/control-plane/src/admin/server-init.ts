import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { newId, rootFingerprint, toBase64Url } from "@trellis/protocol";
import { nodePort, systemClock } from "@trellis/runtime/node";
import { Installer } from "../authority/installer.ts";
import { Statements } from "../authority/statements.ts";
import { silentLog } from "../config/log.ts";
import { loadKeyFile } from "../identity/key-file.ts";
import { KeyRing } from "../identity/key-ring.ts";
import { renderExternalConfig } from "../nats/config.ts";
import { NoticeOutbox } from "../notices/outbox.ts";
import { savePlatformGrants } from "../storage/grants.ts";
import { claimMode } from "../storage/meta.ts";
import { Storage } from "../storage/storage.ts";
import { cliParticipant } from "./participants.ts";
import { ensureDeployment } from "./platform-records.ts";

/** An administrator's credential: the command line connects as this instance. Secret: `seed`. */
export interface AdminCredential {
  readonly participant: string;
  readonly instance: string;
  /** Fingerprint of the root key, to be pinned. */
  readonly root: string;
  /** base64url of the identity seed, which is kept nowhere else. */
  readonly seed: string;
}

const keyFileName = "keys.json";

/** True when a data folder has keys: `server init`, or a start, was there. */
export function isInitialised(dataDir: string): boolean {
  return existsSync(join(resolve(dataDir), keyFileName));
}

/**
 * Prepares a data folder for a server, before any broker or server runs: keys, database, and an administrator's
 * credential. May be repeated, also beside a running server: each time makes one more credential. Whoever can
 * write here holds the keys anyway.
 */
export async function initServer(options: { dataDir: string; name?: string }): Promise<AdminCredential> {
  const dataDir = resolve(options.dataDir);
  const [port, clock] = [nodePort, systemClock];
  const keys = new KeyRing(port, loadKeyFile(join(dataDir, keyFileName), clock.now()));
  const storage = await Storage.open(join(dataDir, "trellis.db"));
  try {
    await claimMode(storage, "server");
    const installer = offlineInstaller(storage, keys);
    const deployment = await ensureDeployment({ storage, installer }, cliParticipant);
    const identity = port.ed25519.keyPair();
    const identityKey = toBase64Url(identity.publicKey);
    const name = options.name ?? "first administrator";
    const wanted = { deployment, identityKey, name, ephemeral: false };
    const instance = (await installer.provision(wanted, { name: "server init", owner: null }))
      .mapErr((problem) => new Error(problem))
      .orThrow();
    await grantAll(storage, deployment.id);
    return {
      participant: cliParticipant.id,
      instance: instance.id,
      root: rootFingerprint(port, keys.root.publicKey),
      seed: toBase64Url(identity.seed),
    };
  } finally {
    await storage.close();
  }
}

/** The configuration of a nats-server, or of every node of a cluster, for the keys in this folder. Public keys only. */
export function externalNatsConfig(options: {
  dataDir: string;
  websocketOrigins?: readonly string[];
}): string {
  const file = join(resolve(options.dataDir), keyFileName);
  const { brokerKeys } = new KeyRing(nodePort, loadKeyFile(file, systemClock.now()));
  const { websocketOrigins } = options;
  return renderExternalConfig({
    keys: brokerKeys,
    ...(websocketOrigins === undefined ? {} : { websocketOrigins }),
  });
}

async function grantAll(storage: Storage, deploymentId: string): Promise<void> {
  const now = systemClock.now();
  const audit = { id: newId(nodePort, now), at: now, actor: "server init", action: "grants.set" };
  await storage.mutate({ ...audit, subject: deploymentId, detail: { rpc: "*" } }, (tx) =>
    savePlatformGrants(tx, {
      deploymentId,
      participantId: cliParticipant.id,
      grants: { revision: 1, rpc: ["*"] },
      now,
    }),
  );
}

/** There is no broker yet: what has to be told stays noted in the tables, and the server tells it when it starts. */
function offlineInstaller(storage: Storage, keys: KeyRing): Installer {
  const [port, clock] = [nodePort, systemClock];
  const statements = new Statements({ port, keys, clock });
  const publisher = { notice: () => Promise.reject(new Error("There is no broker yet.")) };
  const outbox = new NoticeOutbox({ port, clock, storage, statements, publisher, log: silentLog });
  return new Installer({ port, clock, storage, outbox });
}
