import { type Authenticator, connect, type NatsConnection } from "@nats-io/transport-node";

export interface AccountLinkOptions {
  servers: readonly string[];
  /** Logs the static user in. */
  authenticator: Authenticator;
  /** Shown in the broker's list of connections. */
  name: string;
  /** How soon to try again. The callout's own link is fast: clients wait for it. */
  reconnectTimeWait?: number;
}

/**
 * Connects one of the control plane's own static users. It reconnects for ever; an authentication error is
 * retried too, since the broker may be starting with a configuration that is not yet ours.
 */
export function connectAccount(options: AccountLinkOptions): Promise<NatsConnection> {
  const { servers, authenticator, name, reconnectTimeWait = 250 } = options;
  return connect({
    servers: [...servers],
    name,
    authenticator,
    inboxPrefix: `_INBOX.${name}`,
    ignoreAuthErrorAbort: true,
    waitOnFirstConnect: true,
    maxReconnectAttempts: -1,
    reconnectTimeWait,
    reconnectJitter: reconnectTimeWait / 5,
    timeout: 5000,
    noAsyncTraces: true,
  });
}
