import { randomBytes } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { type Static, Type } from "typebox";
import { Value } from "typebox/value";
import { newPlatformSeeds } from "../nats/platform-keys.ts";

const Secret = Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" });

const Seed = Type.String({ pattern: "^S[A-Z2-7]{57}$" });

/** The stored form: secrets are base64url of 32 raw bytes, those of the broker are nkey seeds. */
const KeyFile = Type.Object(
  {
    version: Type.Literal(1),
    root: Secret,
    issuers: Type.Array(
      Type.Object(
        { seed: Secret, notBefore: Type.Integer(), expiresAt: Type.Integer() },
        { additionalProperties: false },
      ),
      { minItems: 1 },
    ),
    routeMaster: Secret,
    nats: Type.Object(
      { sys: Seed, callout: Seed, ctl: Seed, app: Seed, issuer: Seed, xkey: Seed },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);

/** The secrets of one control plane as they are kept on disk. Never log a value of this type. */
export type KeyFile = Static<typeof KeyFile>;

/** Issuers are valid this long; the file's owner rotates them well before. */
const issuerLifeMs = 5 * 365 * 86_400_000;
/** A new issuer's statements are valid for readers whose clock is behind. */
const issuerLeewayMs = 300_000;

/**
 * Loads the key file, or makes it when there is none.
 *
 * Creation is atomic and exclusive: the content is complete, on disk and private (0600 whatever the umask)
 * before the name exists, and of two processes that start together one wins and both use its keys.
 */
export function loadKeyFile(path: string, now: number): KeyFile {
  const known = readKeyFile(path);
  if (known !== undefined) return known;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  createExclusively(path, JSON.stringify(makeKeys(now), undefined, 1));
  const made = readKeyFile(path);
  if (made === undefined) throw new Error(`The key file ${path} vanished while it was being made.`);
  return made;
}

function readKeyFile(path: string): KeyFile | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if (isMissing(cause)) return undefined;
    throw cause;
  }
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0) {
    throw new Error(`The key file ${path} can be read by others; run: chmod 600 ${path}`);
  }
  const value = parseQuietly(text);
  if (!Value.Check(KeyFile, value)) throw new Error(`The key file ${path} is damaged or of another version.`);
  return value;
}

/** A parse error would quote the text around the mistake, which here is a secret. */
function parseQuietly(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function createExclusively(path: string, text: string): void {
  const draft = `${path}.${randomBytes(8).toString("hex")}`;
  const file = openSync(draft, "wx", 0o600);
  try {
    fchmodSync(file, 0o600);
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  try {
    linkSync(draft, path);
  } catch (cause) {
    if (!isExisting(cause)) throw cause;
  } finally {
    rmSync(draft, { force: true });
  }
}

function makeKeys(now: number): KeyFile {
  const secret = () => randomBytes(32).toString("base64url");
  return {
    version: 1,
    root: secret(),
    issuers: [{ seed: secret(), notBefore: now - issuerLeewayMs, expiresAt: now + issuerLifeMs }],
    routeMaster: secret(),
    nats: newPlatformSeeds(),
  };
}

function codeOf(cause: unknown): string | undefined {
  return cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : undefined;
}

function isMissing(cause: unknown): boolean {
  return codeOf(cause) === "ENOENT";
}

function isExisting(cause: unknown): boolean {
  return codeOf(cause) === "EEXIST";
}
