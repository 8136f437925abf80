import { resolve } from "node:path";
import type { ExternalBroker } from "@trellis/control-plane";
import { Command, InvalidArgumentError } from "commander";
import type { CommandContext } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import { notInitialised } from "../nats/config.ts";
import { type DataOptions, dataOption, defaultServerPort } from "./data-option.ts";
import { serverInit } from "./init.ts";

interface Options extends DataOptions {
  readonly nats?: readonly string[];
  readonly advertise?: readonly string[];
  readonly websocket?: readonly string[];
  readonly replicas?: number;
  readonly httpHost: string;
  readonly httpPort: number;
  readonly origin?: readonly string[];
}

export function serverCommand(context: CommandContext): Command {
  const command = new Command("server")
    .description("run a control plane beside your own nats-server")
    .option("--nats <url...>", "servers of the broker, for example nats://127.0.0.1:4222")
    .option("--advertise <url...>", "what services are told to connect to; default: the same")
    .option("--websocket <url...>", "what browsers are told to connect to")
    .option("--replicas <count>", "copies of the platform's own streams: 3 for a cluster", whole)
    .option("--http-host <host>", "where to listen for requests", "127.0.0.1")
    .option("--http-port <port>", "0 takes a free one", whole, defaultServerPort)
    .option("--origin <url...>", "under which this server is reached from outside, the first one is shown")
    .addCommand(serverInit(context))
    .addHelpText(
      "after",
      `
Set up once: \`trellis server init\`, which says what to put into nats-server's configuration.

Examples:
  trellis server --data /var/lib/trellis --nats nats://127.0.0.1:4222
  trellis server --nats nats://n1:4222 nats://n2:4222 --replicas 3 --origin https://trellis.example`,
    );
  return dataOption(command).action((options: Options) => serve(context, options));
}

async function serve(context: CommandContext, options: Options): Promise<void> {
  const { isInitialised } = await import("@trellis/control-plane");
  const dataDir = resolve(context.folder, options.data);
  if (options.nats === undefined) {
    throw new CliFailure("Which nats-server?", {
      exitCode: EXIT.usage,
      hint: "Pass --nats nats://host:4222. To try Trellis out, `trellis dev` brings a broker of its own.",
    });
  }
  if (!isInitialised(dataDir)) throw notInitialised(options.data);
  const { httpHost: host, httpPort: port, origin: origins } = options;
  const { startPlane } = await import("./start-plane.ts");
  const stopping = context.holdSignals();
  const plane = await startPlane(context, {
    dataDir,
    mode: "server",
    nats: brokerOf({ ...options, nats: options.nats }),
    http: { host, port, ...(origins === undefined ? {} : { origins }) },
  });
  const { terminal } = context;
  if (terminal.json) terminal.value({ event: "ready", url: plane.url, root: plane.rootFingerprint });
  else
    terminal.line(
      `${terminal.colours.bold("Trellis is running")}  ${plane.url}  root ${plane.rootFingerprint}`,
    );
  await new Promise<void>((settle) => {
    stopping.addEventListener("abort", () => settle(), { once: true });
    if (stopping.aborted) settle();
  });
  await plane.stop();
}

function brokerOf(options: Options & { nats: readonly string[] }): ExternalBroker {
  const { nats: servers, advertise: advertised, websocket, replicas } = options;
  return {
    kind: "external",
    servers,
    ...(advertised === undefined ? {} : { advertised }),
    ...(websocket === undefined ? {} : { websocket }),
    ...(replicas === undefined ? {} : { replicas }),
  };
}

function whole(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isSafeInteger(value) && value >= 0 && value <= 65_535) return value;
  throw new InvalidArgumentError("A whole number is needed.");
}
