/** What `connection.status` tells; one value a phase, each with since when (ms since the epoch). */
export type ConnectionStatus =
  | { readonly phase: "connecting"; readonly since: number; readonly attempt: number }
  | { readonly phase: "connected"; readonly since: number; readonly server: string }
  | {
      readonly phase: "reconnecting";
      readonly since: number;
      readonly attempt: number;
      readonly reason: string;
    }
  | { readonly phase: "closed"; readonly since: number; readonly reason: string }
  | { readonly phase: "error"; readonly since: number; readonly reason: string; readonly error: Error };

export type ConnectionPhase = ConnectionStatus["phase"];

/** The observable connection of a service or client. */
export interface Connection {
  readonly status: ConnectionStatus;
  /** Resolves when the connection has ended for good, with the error that ended it or nothing. */
  readonly closed: Promise<Error | undefined>;
  /** Calls the listener with the current status, then with every change, until the returned function is called. */
  subscribe(listener: (status: ConnectionStatus) => void): () => void;
  /** Closes for good; what is in flight ends with a `CancelledError`. Idempotent. */
  close(): Promise<void>;
}
