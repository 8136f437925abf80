import { resolve } from "node:path";
import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import type { FoundPlatform } from "../../platform/find-platform.ts";
import { writePrivateFile } from "../../platform/private-file.ts";

interface Options extends PlatformOptions {
  readonly name?: string;
  readonly publicKey?: string;
  readonly out?: string;
}

export function svcProvision(context: CommandContext): Command {
  const command = new Command("provision")
    .description("add an instance to a deployment, and print what it needs to connect")
    .argument("<deployment>", "name or id of the deployment")
    .option("--name <label>", "what the instance is called in lists")
    .option("--public-key <key>", "base64url of its identity key, when it made its seed itself")
    .option("--out <file>", "write the environment to a new file (mode 0600), and not to the terminal")
    .addHelpText(
      "after",
      `
The seed is the instance's identity. It is shown this once and kept nowhere on the platform.

Examples:
  trellis svc provision acme.orders-service --out orders.env
  node --env-file=orders.env services/orders.js`,
    );
  return onPlatform(command).action((deployment: string, options: Options) =>
    withCore(context, options, async (core, platform) => {
      const { name, publicKey: identityKey, out } = options;
      const input = {
        deployment,
        ...(name === undefined ? {} : { name }),
        ...(identityKey === undefined ? {} : { identityKey }),
      };
      const { instance, seed } = await core.rpc.core.instancesProvision(input).orThrow();
      const { terminal } = context;
      const environment = environmentOf(platform, seed);
      if (out !== undefined) writeEnvironment(resolve(context.folder, out), environment);
      const shown = out === undefined ? environment : {};
      if (terminal.json) return terminal.value({ instance, environment: shown });
      terminal.note(`${terminal.noteColours.green("+")} ${instance.name}  (${instance.id})`);
      if (out !== undefined) return terminal.note(`Its environment is in ${out}.`);
      if (seed !== undefined) terminal.note("The seed is shown this once; keep it where secrets are kept.");
      for (const [key, value] of Object.entries(environment)) terminal.line(`${key}=${value}`);
    }),
  );
}

function environmentOf({ url, root }: FoundPlatform, seed: string | undefined): Record<string, string> {
  return {
    TRELLIS_URL: url,
    ...(root === undefined ? {} : { TRELLIS_ROOT: root }),
    ...(seed === undefined ? {} : { TRELLIS_SEED: seed }),
  };
}

function writeEnvironment(path: string, environment: Record<string, string>): void {
  const text = Object.entries(environment).map(([key, value]) => `${key}=${value}\n`);
  if (writePrivateFile(path, text.join(""), { exclusive: true })) return;
  throw new CliFailure(`${path} exists already; the instance was provisioned, its seed is lost.`, {
    exitCode: EXIT.usage,
    hint: "Provision again with another --out, and disable the instance that has no seed.",
  });
}
