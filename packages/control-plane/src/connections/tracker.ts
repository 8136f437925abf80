import type { Clock } from "@trellis/runtime/node";
import type { Log } from "../config/log.ts";
import type { Timer, Timers } from "../lifecycle/timers.ts";
import { findAuthorization } from "../storage/authorizations.ts";
import { allConnections, type ConnectionRow, setConnectionSocket } from "../storage/connections.ts";
import type { Storage } from "../storage/storage.ts";
import type { BrokerMonitor } from "./broker-monitor.ts";
import type { ConnectionSocket, Socket } from "./events.ts";

/** A connection that is gone this long has ended; one that comes back before was only interrupted. */
const endDelayMs = 750;
const flushDelayMs = 20;

export interface TrackerOptions {
  storage: Storage;
  monitor: BrokerMonitor;
  clock: Clock;
  timers: Timers;
  log: Log;
  /** A connection ended: tells everybody else. */
  announceEnd(connection: string, reason: string): Promise<void>;
}

type SocketState = Pick<ConnectionRow, "state" | "serverId" | "cid" | "updatedAt">;

/**
 * Knows which connection has which socket.
 *
 * Invariants: 1. a connection has one socket; a newer one displaces the older, which is kicked; 2. a socket
 * whose authorization was revoked while it connected is kicked; 3. what events lost, `reconcile` finds;
 * 4. SQL follows in batches, so that a thousand reconnects are a few transactions.
 */
export class ConnectionTracker {
  readonly #options: TrackerOptions;
  readonly #sockets = new Map<string, Socket>();
  readonly #ending = new Map<string, Timer>();
  #dirty = new Map<string, SocketState>();
  #flushing: Timer | undefined;
  #unfollow: (() => void) | undefined;
  #stopped = false;

  constructor(options: TrackerOptions) {
    this.#options = options;
  }

  /** Follows the broker's events, then takes stock of what is connected already. */
  async start(): Promise<void> {
    this.#unfollow = this.#options.monitor.follow({
      connected: (socket) => this.#connected(socket),
      disconnected: (socket) => this.#disconnected(socket),
    });
    await this.reconcile();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unfollow?.();
    for (const timer of this.#ending.values()) timer.clear();
    this.#ending.clear();
    await this.flush();
  }

  /** The socket of a connection, when it has one. */
  socketOf(connection: string): Socket | undefined {
    return this.#sockets.get(connection);
  }

  /** Closes a connection's socket, if it has one. The caller has revoked before, or wants it to come back. */
  async kick(connection: string): Promise<boolean> {
    const socket = this.#sockets.get(connection);
    if (socket === undefined) return false;
    await this.#kickSocket(socket, connection);
    return true;
  }

  /** Compares what we believe with what the broker lists; repairs both ways. */
  async reconcile(): Promise<void> {
    const { monitor, storage } = this.#options;
    const listed = await monitor.list();
    const present = new Set(listed.map(socketKey));
    for (const socket of listed) this.#connected(socket);
    for (const [connection, socket] of [...this.#sockets]) {
      if (!present.has(socketKey(socket))) this.#disconnected({ ...socket, connection, digest: "" });
    }
    for (const row of await allConnections(storage.queries)) {
      if (row.state === "connected" && !this.#sockets.has(row.id)) this.#gone(row.id);
    }
  }

  /** Writes pending socket states to SQL. */
  async flush(): Promise<void> {
    this.#flushing?.clear();
    this.#flushing = undefined;
    const batch = this.#dirty;
    if (batch.size === 0) return;
    this.#dirty = new Map();
    await this.#options.storage.transact(async (tx) => {
      for (const [connection, state] of batch) await setConnectionSocket(tx, connection, state);
    });
  }

  #connected(socket: ConnectionSocket): void {
    const { connection } = socket;
    const older = this.#sockets.get(connection);
    if (older !== undefined && socketKey(older) === socketKey(socket)) return;
    if (older !== undefined && older.startedAt > socket.startedAt) {
      void this.#kickSocket(socket, connection);
      return;
    }
    this.#sockets.set(connection, socket);
    this.#ending.get(connection)?.clear();
    this.#ending.delete(connection);
    this.#record(connection, { state: "connected", serverId: socket.serverId, cid: socket.cid });
    if (older !== undefined) void this.#kickSocket(older, connection);
    void this.#recheck(socket);
  }

  #disconnected(socket: ConnectionSocket): void {
    const current = this.#sockets.get(socket.connection);
    if (current === undefined || socketKey(current) !== socketKey(socket)) return;
    this.#sockets.delete(socket.connection);
    this.#gone(socket.connection);
  }

  #gone(connection: string): void {
    this.#record(connection, { state: "disconnected", serverId: null, cid: null });
    if (this.#ending.has(connection) || this.#stopped) return;
    const timer = this.#options.timers.set(
      () => {
        this.#ending.delete(connection);
        void this.#attempt("end", () => this.#options.announceEnd(connection, "disconnected"));
      },
      endDelayMs,
      { background: true },
    );
    this.#ending.set(connection, timer);
  }

  /** A revocation may have overtaken the connect: the callout said yes, and the kick found no socket. */
  async #recheck(socket: ConnectionSocket): Promise<void> {
    await this.#attempt("recheck", async () => {
      const row = await findAuthorization(this.#options.storage.queries, socket.digest);
      if (row === undefined || row.revokedAt !== null) await this.#kickSocket(socket, socket.connection);
    });
  }

  async #kickSocket(socket: Socket, connection: string): Promise<void> {
    await this.#attempt("kick", () => this.#options.monitor.kick(socket), connection);
  }

  #record(connection: string, state: Omit<SocketState, "updatedAt">): void {
    this.#dirty.set(connection, { ...state, updatedAt: this.#options.clock.now() });
    if (this.#flushing !== undefined || this.#stopped) return;
    const flush = () => void this.#attempt("flush", () => this.flush());
    this.#flushing = this.#options.timers.set(flush, flushDelayMs);
  }

  async #attempt(step: string, work: () => Promise<void>, connection?: string): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (this.#stopped) return;
      this.#options.log.warn(
        { code: `trellis.connections.${step}_failed`, connection, error },
        "Will be repaired.",
      );
    }
  }
}

function socketKey(socket: Socket): string {
  return `${socket.serverId}:${socket.cid}`;
}
