import type { NatsConnection } from "@nats-io/nats-core";
import { NatsConnectionImpl } from "@nats-io/nats-core/internal";

/**
 * Fails a dial whose socket closed during the handshake. The client would otherwise wait for the rest of it
 * until its dial timeout: seconds in which a broker that restarts, or refuses us, is long there again.
 */
export function failClosedHandshake(nats: NatsConnection): void {
  if (!(nats instanceof NatsConnectionImpl)) return;
  const { transport, connectError } = nats.protocol;
  // A newer dial may have begun by now: that one is none of our business.
  if (transport.isClosed) connectError?.(new Error("the broker closed the connection during the handshake"));
}
