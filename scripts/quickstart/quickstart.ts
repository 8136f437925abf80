import { connectClientWith, nodePlatform, Scope } from "@trellis/runtime/node";
import { helloApp } from "../../examples/01-hello/contracts/greeter.ts";
import { CtrlCs } from "../../packages/cli/src/ctrl-c.ts";
import { startPlatform, startServices } from "./stage.ts";
import { story } from "./story.ts";
import { takeTour } from "./tour.ts";
import { openWayIn } from "./way-in.ts";

/** Runs the whole quickstart; the result is the exit code. Whatever happens, nothing stays behind. */
export async function quickstart(options: { once: boolean }): Promise<number> {
  const scope = new Scope({ name: "quickstart" });
  const asked = endAsked();
  const lines: string[] = [];
  try {
    const played = play(scope, lines, options.once).then(() => "played" as const);
    const first = await Promise.race([played, asked]);
    if (first === "played" && !options.once) await asked;
    // The one who loses the race may fail on what is being closed.
    played.catch(() => undefined);
    return 0;
  } catch (error) {
    process.stderr.write(`\n✗ ${error instanceof Error ? error.message : String(error)}\n`);
    for (const line of lines.slice(-20)) process.stderr.write(`  ${line}\n`);
    return 1;
  } finally {
    await scope.close();
  }
}

async function play(scope: Scope, lines: string[], once: boolean): Promise<void> {
  story.heading("Trellis quickstart");
  const plane = await story.step("a platform is running: control plane and nats-server", () =>
    startPlatform(scope),
  );
  await story.step("two services joined it: hello.greeter-service, hello.translator-service", () =>
    startServices(scope, plane, (_, line) => lines.push(line)),
  );
  const { url: trellisUrl, rootFingerprint: root, devToken = "" } = plane;
  const discover = () => ({ production: false, devToken });
  const client = await story.step("a client is connected: hello.app", () =>
    connectClientWith(
      { participant: helloApp, trellisUrl, root, runtime: { log: false } },
      { platform: { ...nodePlatform, discover } },
    ).orThrow(),
  );
  scope.add("client", () => client.close());
  await takeTour(client, lines);
  if (once) {
    story.heading("Next");
    story.command("npm run quickstart", "on a terminal it stays up, for the commands below");
    return commands();
  }
  const close = openWayIn(plane);
  if (close !== undefined) scope.add("way in", close);
  story.heading("It stays up until Ctrl-C. In another terminal:");
  if (close === undefined)
    story.line("  (another platform of this folder runs already: these commands reach that one)");
  commands();
}

function commands(): void {
  story.command("npx trellis services", "what is connected");
  story.command(`npx trellis call Greeter.Hello '{"name":"Grace"}'`, "call it yourself");
  story.command("npx trellis doctor", "look whether all is well");
  story.line();
  story.line("  The code: examples/01-hello (contracts/greeter.ts first, then services/, client.ts).");
  story.line("  A project of your own: `npx trellis dev services/yours.ts --watch`.");
  story.line();
}

/** Resolves when this is to end: Ctrl-C, a signal, or the process that started it is gone. */
function endAsked(): Promise<"asked"> {
  const parent = process.ppid;
  return new Promise((resolve) => {
    const heard = new CtrlCs();
    const ask = () => {
      if (heard.heard(performance.now()) === "again") process.exit(130);
      resolve("asked");
    };
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, ask);
    process.stdout.on("error", () => resolve("asked"));
    setInterval(() => {
      if (process.ppid !== parent) resolve("asked");
    }, 500).unref();
  });
}
