import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type ControlPlane, startControlPlane } from "@trellis/control-plane";
import type { Scope } from "@trellis/runtime/node";
import { EntryProcess } from "../../packages/cli/src/dev/entry-process.ts";

export const example = join(import.meta.dirname, "../../examples/01-hello");
const services = ["translator", "greeter"];
const patienceMs = 60_000;

/** Starts a platform in a folder of its own, so that any number of quickstarts can run side by side. */
export async function startPlatform(scope: Scope): Promise<ControlPlane> {
  const dataDir = await mkdtemp(join(tmpdir(), "trellis-quickstart-"));
  scope.add("folder", () => rm(dataDir, { recursive: true, force: true }));
  const plane = await startControlPlane({ dataDir, mode: "dev" });
  scope.add("platform", () => plane.stop());
  return plane;
}

/** Starts the services as processes of their own, and waits until both are connected. */
export async function startServices(
  scope: Scope,
  plane: ControlPlane,
  onLine: (service: string, line: string) => void,
): Promise<void> {
  const env = {
    ...process.env,
    TRELLIS_URL: plane.url,
    TRELLIS_ROOT: plane.rootFingerprint,
    TRELLIS_DEV_TOKEN: plane.devToken ?? "",
  };
  const started = services.map((name) => {
    const file = join(example, "services", `${name}.ts`);
    const entry = new EntryProcess({
      file,
      args: [],
      folder: example,
      env,
      onLine: (line) => onLine(name, line),
    });
    return { name, entry };
  });
  scope.add("services", async () => {
    await Promise.all(started.map(({ entry }) => entry.stop()));
  });
  const failed = Promise.race(
    started.map(async ({ name, entry }) => {
      const { code } = await entry.exited;
      throw new Error(`The ${name} service ended with code ${code}.`);
    }),
  );
  await Promise.race([failed, connected(plane, started.length)]);
  // From here on an end is noticed by whoever calls.
  failed.catch(() => undefined);
}

async function connected(plane: ControlPlane, count: number): Promise<void> {
  for (const until = Date.now() + patienceMs; Date.now() < until; await pause(25)) {
    const { connections } = (await plane.core["Core.Connections.List"]({})).orThrow();
    const ours = connections.filter(
      ({ participant, state }) => participant.id.startsWith("hello.") && state === "connected",
    );
    if (ours.length === count) return;
  }
  throw new Error(`The services did not connect within ${patienceMs / 1000} s.`);
}
