import process from "node:process";
import { findNatsServer, formatVersion } from "@trellis/control-plane/nats";
import type { CommandContext, PlatformOptions } from "../context.ts";
import { platformOf } from "../context.ts";
import { connectCore } from "../platform/connect-core.ts";
import type { FoundPlatform } from "../platform/find-platform.ts";
import { askWellKnown } from "../platform/well-known.ts";
import { reportOf } from "../report.ts";

/** What one check found; `next` says what to do about it. */
export interface Finding {
  readonly check: string;
  readonly state: "ok" | "warn" | "fail";
  readonly detail: string;
  readonly next?: string;
}

/** Clocks that differ by more than this are worth a word; beyond the protocol's window they are still corrected. */
const clockWarnMs = 5_000;
const echoes = 10;

/** Looks at everything that has to be right, in the order in which one thing needs the other. */
export async function* examine(context: CommandContext, options: PlatformOptions): AsyncGenerator<Finding> {
  yield nodeVersion();
  yield await natsServer(context.env);
  const platform = findPlatform(context, options);
  yield platform.finding;
  if (platform.found === undefined) return;
  const reached = await reach(platform.found);
  yield* reached.findings;
  if (reached.ok) yield await echo(platform.found);
}

function nodeVersion(): Finding {
  const { node } = process.versions;
  const major = Number(node.split(".")[0]);
  const detail = `Node ${node}`;
  return major >= 20
    ? { check: "node", state: "ok", detail }
    : { check: "node", state: "fail", detail, next: "Install Node 20.19 or later." };
}

async function natsServer(env: NodeJS.ProcessEnv): Promise<Finding> {
  try {
    const advice: string[] = [];
    const found = await findNatsServer({ env, fetch: false, onProgress: (text) => advice.push(text) });
    const detail = `nats-server ${formatVersion(found.version)} (${found.source}: ${found.path})`;
    const [first] = advice;
    return first === undefined
      ? { check: "nats-server", state: "ok", detail }
      : { check: "nats-server", state: "warn", detail, next: first };
  } catch {
    const next = "`trellis dev` fetches one by itself; for a server of your own install 2.12 or newer.";
    return { check: "nats-server", state: "warn", detail: "none was found on this machine", next };
  }
}

function findPlatform(
  context: CommandContext,
  options: PlatformOptions,
): { finding: Finding; found: FoundPlatform | undefined } {
  try {
    const found = platformOf(context, options);
    return { finding: { check: "platform", state: "ok", detail: `${found.url} (${found.source})` }, found };
  } catch (thrown) {
    const { message, hint } = reportOf(thrown);
    const next = hint === undefined ? {} : { next: hint };
    return { finding: { check: "platform", state: "fail", detail: message, ...next }, found: undefined };
  }
}

async function reach({ url, root }: FoundPlatform): Promise<{ ok: boolean; findings: Finding[] }> {
  const answer = await askWellKnown(url);
  if ("problem" in answer) {
    const next = "Start it (`trellis dev`, `trellis server`), or correct the address.";
    return { ok: false, findings: [{ check: "control plane", state: "fail", detail: answer.problem, next }] };
  }
  const { offsetMs, roundTripMs, rootFingerprint, dev } = answer;
  const mode = dev ? "dev mode" : "server mode";
  const findings: Finding[] = [
    { check: "control plane", state: "ok", detail: `answers in ${roundTripMs.toFixed(1)} ms, ${mode}` },
  ];
  if (root !== undefined && root !== rootFingerprint) {
    const next =
      "This address belongs to another platform: get a new credential, or start `trellis dev` again.";
    findings.push({ check: "root key", state: "fail", detail: "is not the one that was pinned", next });
    return { ok: false, findings };
  }
  const detail = `differ by ${Math.abs(Math.round(offsetMs))} ms`;
  const off = Math.abs(offsetMs) > clockWarnMs;
  const next = "Trellis corrects for it; other programs do not. Turn on time synchronisation.";
  findings.push(
    off ? { check: "clocks", state: "warn", detail, next } : { check: "clocks", state: "ok", detail },
  );
  return { ok: true, findings };
}

async function echo(platform: FoundPlatform): Promise<Finding> {
  const check = "connection";
  try {
    const started = performance.now();
    const core = await connectCore(platform);
    const connectMs = performance.now() - started;
    try {
      const times: number[] = [];
      for (let count = 0; count < echoes; count += 1) {
        const sent = performance.now();
        await core.rpc.core.participantsList({ limit: 1 }).orThrow();
        times.push(performance.now() - sent);
      }
      times.sort((left, right) => left - right);
      const median = times[Math.floor(times.length / 2)] ?? 0;
      const detail = `connected in ${connectMs.toFixed(0)} ms, a call takes ${median.toFixed(1)} ms`;
      return { check, state: "ok", detail };
    } finally {
      await core.close();
    }
  } catch (thrown) {
    const { message, hint } = reportOf(thrown);
    return { check, state: "fail", detail: message, ...(hint === undefined ? {} : { next: hint }) };
  }
}
