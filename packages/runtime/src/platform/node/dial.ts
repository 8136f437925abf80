import type { Authenticator, NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import type { DialOptions } from "../platform.ts";

/**
 * Opens one TCP connection. The first dial fails at once (the caller has its own bounded retry loop);
 * after that the client reconnects for ever, and an authentication error never ends that loop:
 * only a refused refresh does, by closing the connection.
 */
export async function dialTcp(options: DialOptions): Promise<NatsConnection> {
  const authenticator: Authenticator = (nonce) => ({ ...options.authenticate(nonce) });
  return connect({
    servers: [...options.servers],
    name: options.name,
    inboxPrefix: options.inboxPrefix,
    authenticator,
    timeout: options.timeoutMs,
    waitOnFirstConnect: false,
    ignoreAuthErrorAbort: true,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    reconnectJitter: 150,
    reconnectToServer: (pool) => {
      const server = pool[0];
      const delay = options.holdBack();
      return server !== undefined && delay > 0 ? { server, delay } : null;
    },
    noAsyncTraces: true,
    pingInterval: 15_000,
    maxPingOut: 2,
  });
}
