import { type AccountLimits, renderAccounts } from "./accounts.ts";
import { quote, quoteList } from "./conf-text.ts";
import type { PlatformPublicKeys } from "./platform-keys.ts";

/** What is set on every broker of Trellis, managed or not. */
const COMMON = `max_payload: 1MB
# A connect token, a signature and an inbox prefix make long protocol lines.
max_control_line: 32KB
write_deadline: "10s"
ping_interval: "20s"
ping_max: 2
`;

export interface ManagedNatsConfig {
  /** Default "trellis". */
  readonly serverName?: string;
  /** TCP port on loopback. Default: a free one. */
  readonly port?: number;
  /** WebSocket port on loopback. Default: a free one. */
  readonly websocketPort?: number;
  /** Web origins whose pages may connect. Default: any; clients that are not browsers send none. */
  readonly websocketOrigins?: readonly string[];
  /** Accounts and callout of Trellis. Without them the broker is open to everybody on this machine: for tests. */
  readonly keys?: PlatformPublicKeys;
  readonly limits?: AccountLimits;
  /** Raw lines at the end of the file. */
  readonly extra?: string;
}

export interface ManagedNatsPaths {
  readonly storeDir: string;
  readonly logFile: string;
  readonly pidFile: string;
  readonly portsDir: string;
}

/** The configuration of the managed child: loopback only, JetStream on disk, WebSocket without compression. */
export function renderManagedConfig(config: ManagedNatsConfig, paths: ManagedNatsPaths): string {
  const {
    serverName = "trellis",
    port = -1,
    websocketPort = -1,
    websocketOrigins,
    keys,
    limits,
    extra,
  } = config;
  const origins = websocketOrigins === undefined ? "" : `, allowed_origins: ${quoteList(websocketOrigins)}`;
  return `# Written by Trellis at every start; changes are lost. Holds public keys only.
server_name: ${quote(serverName)}
listen: ${quote(`127.0.0.1:${port}`)}
ports_file_dir: ${quote(paths.portsDir)}
pid_file: ${quote(paths.pidFile)}
log_file: ${quote(paths.logFile)}
logfile_size_limit: 10MB
logfile_max_num: 3
jetstream { store_dir: ${quote(paths.storeDir)} }
# Compression is off: it acts before authentication, and a few bytes can then blow up to gigabytes.
websocket { listen: ${quote(`127.0.0.1:${websocketPort}`)}, no_tls: true, compression: false${origins} }
${COMMON}${keys === undefined ? "" : renderAccounts(keys, limits)}${extra === undefined ? "" : `${extra}\n`}`;
}

export interface ExternalNatsConfig {
  readonly keys: PlatformPublicKeys;
  /** Web origins of the console and of browser clients. */
  readonly websocketOrigins?: readonly string[];
  readonly limits?: AccountLimits;
}

/** What an operator pastes into the configuration of a server or cluster of their own. Public keys only. */
export function renderExternalConfig(config: ExternalNatsConfig): string {
  const origins = config.websocketOrigins ?? ["https://console.example.com"];
  return `# Trellis on your own nats-server (2.12.6 or newer). The same file goes on every node of a cluster.
# It holds public keys only; the secret halves stay with the control plane.
# A reload (SIGHUP) disconnects every client for a moment; they come back by themselves.
#
# Yours to add: server_name, listen, tls, cluster, and where JetStream keeps its data:
#   jetstream { store_dir: "/var/lib/nats" }
#
# For browsers, with a certificate; keep compression off (it acts before authentication):
#   websocket {
#     listen: "0.0.0.0:8443", compression: false
#     allowed_origins: ${quoteList(origins)}
#     tls { cert_file: "/etc/nats/cert.pem", key_file: "/etc/nats/key.pem" }
#   }

${COMMON}
${renderAccounts(config.keys, config.limits)}`;
}
