import type { BootstrapAnswer, BootstrapRequest } from "@trellis/protocol";
import type { ConnectionKeys } from "./connection-keys.ts";

/**
 * Where a connection's authority comes from. The usual source is the control plane over HTTP; the control
 * plane itself, which serves its own APIs through this runtime, answers in process.
 */
export interface BootstrapSource {
  /** First answer of a connection. Throws a `TransportError`. */
  bootstrap(exchange: BootstrapExchange): Promise<BootstrapAnswer>;
  /** A newer answer for a connection that exists. Throws a `TransportError`; `isFinal` tells if retrying helps. */
  refresh(exchange: BootstrapExchange): Promise<BootstrapAnswer>;
}

export interface BootstrapExchange {
  /** Everything but the two fields that change with every attempt. */
  readonly request: Omit<BootstrapRequest, "requestId" | "issuedAt">;
  readonly keys: ConnectionKeys;
  readonly signal: AbortSignal;
}
