import { existsSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import { writeCredentialFile } from "../../platform/credential-file.ts";
import { type DataOptions, dataOption, defaultServerPort } from "./data-option.ts";

interface Options extends DataOptions {
  readonly origin: string;
  readonly credential?: string;
  readonly natsConfig?: string;
  readonly name?: string;
}

export function serverInit(context: CommandContext): Command {
  const command = new Command("init")
    .description("prepare a server: keys, and an administrator's credential")
    .option("--origin <url>", "where the server will be reached", `http://127.0.0.1:${defaultServerPort}`)
    .option("--credential <file>", "where the credential goes; default: <data>/admin.credential.json")
    .option(
      "--nats-config <file>",
      "where nats-server's configuration goes; default: <data>/trellis.nats.conf",
    )
    .option("--name <label>", "what the credential is called in lists")
    .addHelpText(
      "after",
      `
Runs on the server's own machine. Once the keys are there, it makes one more credential each time.

Examples:
  trellis server init --data /var/lib/trellis --origin https://trellis.example
  trellis server init --credential second-admin.json --name "Ada's laptop"`,
    );
  return dataOption(command).action((options: Options) => init(context, options));
}

async function init(context: CommandContext, options: Options): Promise<void> {
  const { externalNatsConfig, initServer } = await import("@trellis/control-plane");
  const { terminal, folder } = context;
  const dataDir = resolve(folder, options.data);
  const origin = originOf(options.origin);
  const credential = resolve(folder, options.credential ?? join(dataDir, "admin.credential.json"));
  if (existsSync(credential)) throw credentialExists(credential);
  const admin = await initServer({
    dataDir,
    ...(options.name === undefined ? {} : { name: options.name }),
  }).catch((cause: unknown) => {
    throw cause instanceof Error && /mode/.test(cause.message)
      ? new CliFailure(cause.message, { exitCode: EXIT.usage, hint: "Pass another folder by --data.", cause })
      : cause;
  });
  // Keys are no part of anybody's repository, also where the folder is made inside of one.
  writeFileSync(join(dataDir, ".gitignore"), "*\n");
  const { root, seed, instance } = admin;
  if (!writeCredentialFile(credential, { version: 1, url: origin, root, seed }))
    throw credentialExists(credential);
  const config = resolve(folder, options.natsConfig ?? join(dataDir, "trellis.nats.conf"));
  writeFileSync(config, externalNatsConfig({ dataDir, websocketOrigins: [origin] }));
  if (terminal.json) return terminal.value({ data: dataDir, credential, natsConfig: config, root, instance });
  const near = (path: string) => shown(relative(folder, path), path);
  const { green, bold } = terminal.colours;
  terminal.line(`${green("+")} data        ${near(dataDir)}`);
  terminal.line(
    `${green("+")} credential  ${near(credential)}  (mode 0600: whoever holds it administers the platform)`,
  );
  terminal.line(`${green("+")} broker      ${near(config)}  (public keys only)`);
  terminal.line(`  root        ${root}`);
  terminal.line();
  terminal.line(bold("Next"));
  terminal.line(
    `  1. nats-server: put \`include ${near(config)}\` and a jetstream block into its configuration`,
  );
  terminal.line(`  2. trellis server --data ${near(dataDir)} --nats nats://127.0.0.1:4222`);
  terminal.line(`  3. trellis participants ls --credential ${near(credential)}`);
}

function originOf(text: string): string {
  try {
    return new URL(text).origin;
  } catch (cause) {
    throw new CliFailure(`--origin ${text} is not a URL.`, { exitCode: EXIT.usage, cause });
  }
}

function credentialExists(path: string): CliFailure {
  return new CliFailure(`${path} exists already, and is left as it is.`, {
    exitCode: EXIT.usage,
    hint: "Pass --credential <file> to make another administrator's credential.",
  });
}

/** The shorter of two spellings of a path. */
function shown(near: string, far: string): string {
  return near !== "" && !near.startsWith("..") ? near : far;
}
