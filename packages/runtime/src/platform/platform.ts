import type { NatsConnection } from "@nats-io/nats-core";
import type { Port } from "@trellis/protocol";
import type { LogSink } from "../logging/logger.ts";

/**
 * Everything the runtime needs from the place it runs in. Only files below `platform/node/` may import
 * `node:*`; a browser brings its own implementation of this one interface.
 */
export interface Platform {
  readonly port: Port;
  /** Which of the server's transport lists this platform dials. */
  readonly transport: "tcp" | "websocket";
  dial(options: DialOptions): Promise<NatsConnection>;
  /** Posts over HTTP or HTTPS; follows no redirect. Rejects when there is no answer to be had. */
  post(url: URL, request: HttpPost): Promise<HttpAnswer>;
  /** What the surroundings say when `connect` was given less than it needs. */
  discover(): DiscoveredSettings;
  readonly logSink: LogSink;
  /** Runtime versions for the health sample, for instance `{ node: "20.20.2" }`. */
  readonly versions: Readonly<Record<string, string>>;
}

export interface HttpPost {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** A longer answer is an error. */
  readonly maxBytes: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** One attempt to open a broker connection; reconnects afterwards use the same settings for ever. */
export interface DialOptions {
  readonly servers: readonly string[];
  readonly name: string;
  readonly inboxPrefix: string;
  /** Called on every dial, also on reconnects; synchronous because the broker client is. */
  authenticate(nonce: string | undefined): BrokerCredentials;
  /** Milliseconds to wait before the next dial, over and above the client's own pause. */
  holdBack(): number;
  readonly timeoutMs: number;
}

export interface BrokerCredentials {
  readonly nkey: string;
  readonly sig: string;
  readonly auth_token?: string;
}

export interface DiscoveredSettings {
  readonly trellisUrl?: string;
  readonly seed?: string;
  /** Fingerprint of the root key to pin. */
  readonly root?: string;
  readonly devToken?: string;
  readonly production: boolean;
}
