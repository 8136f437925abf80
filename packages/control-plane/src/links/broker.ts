import { join } from "node:path";
import type { Transports } from "@trellis/protocol";
import type { ExternalBroker, ManagedBroker } from "../config/config.ts";
import { findNatsServer } from "../nats/locate.ts";
import type { PlatformPublicKeys } from "../nats/platform-keys.ts";
import { ManagedNats } from "../nats/server.ts";

/** The broker as the control plane sees it, whoever runs it. */
export interface Broker {
  /** What the control plane's own links dial. */
  servers: readonly string[];
  transports: Transports;
  replicas: number;
  /** The child, when it is ours. */
  managed: ManagedNats | undefined;
}

export interface OpenBrokerInput {
  config: ManagedBroker | ExternalBroker;
  dataDir: string;
  keys: PlatformPublicKeys;
  /** Whose pages may open a WebSocket to the managed broker. */
  websocketOrigins: readonly string[];
  /** Told what takes time. */
  say(step: string): void;
}

/** Starts the managed broker, or takes the external one as it is described. */
export async function openBroker(input: OpenBrokerInput): Promise<Broker> {
  const { config, dataDir, keys, websocketOrigins, say } = input;
  if (config.kind === "external") {
    const { servers, advertised = servers, websocket = [], replicas = 1 } = config;
    return {
      servers,
      transports: { tcp: [...advertised], websocket: [...websocket] },
      replicas,
      managed: undefined,
    };
  }
  const binary = config.binary ?? (await findNatsServer({ onProgress: say })).path;
  const ports = {
    ...(config.port === undefined ? {} : { port: config.port }),
    ...(config.websocketPort === undefined ? {} : { websocketPort: config.websocketPort }),
  };
  const managed = await ManagedNats.start({
    binary,
    dir: join(dataDir, "nats"),
    config: { keys, websocketOrigins, ...ports },
  });
  return {
    servers: [managed.url],
    transports: { tcp: [managed.url], websocket: [managed.wsUrl] },
    replicas: 1,
    managed,
  };
}
