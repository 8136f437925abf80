import { execFile } from "node:child_process";

export interface NatsVersion {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
}

/** The version that Trellis fetches and is tested with. */
export const PINNED_VERSION: NatsVersion = { major: 2, minor: 15, patch: 1 };

/** The oldest that has what Trellis builds on (JetStream API level 2). */
export const MINIMUM_VERSION: NatsVersion = { major: 2, minor: 12, patch: 0 };

/** Older 2.12 releases have known holes (WebSocket compression before authentication, stream restore). */
export const ADVISED_VERSION: NatsVersion = { major: 2, minor: 12, patch: 6 };

export function formatVersion(version: NatsVersion): string {
  return `${version.major}.${version.minor}.${version.patch}`;
}

/** Reads `2.15.1`, `v2.15.1` or `nats-server: v2.15.1-beta`; undefined when there is no version in it. */
export function parseVersion(text: string): NatsVersion | undefined {
  const match = /(?:^|[\sv])(\d{1,4})\.(\d{1,4})\.(\d{1,4})/.exec(text);
  if (match === null) return undefined;
  return { major: Number(match[1]), minor: Number(match[2]), patch: Number(match[3]) };
}

/** Negative when `a` is older than `b`, 0 when they are equal. */
export function compareVersions(a: NatsVersion, b: NatsVersion): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch;
}

/** Asks a binary for its version: undefined with a reason when it does not run or does not answer like nats-server. */
export function askVersion(binary: string): Promise<{ version: NatsVersion } | { reason: string }> {
  return new Promise((resolve) => {
    execFile(binary, ["--version"], { timeout: 5_000, maxBuffer: 64 * 1024 }, (error, stdout) => {
      if (error !== null) return resolve({ reason: `does not run (${error.code ?? error.message})` });
      const version = stdout.includes("nats-server") ? parseVersion(stdout) : undefined;
      resolve(version === undefined ? { reason: "is not a nats-server" } : { version });
    });
  });
}
