import { resolve } from "node:path";
import type { ManagedNatsConfig } from "./config.ts";
import { type Launched, type LaunchOptions, launch } from "./launch.ts";
import { NatsError } from "./nats-error.ts";

export interface ManagedNatsOptions {
  /** Path of a nats-server, see `findNatsServer`. */
  readonly binary: string;
  /** Folder of its own: configuration, log, data. Made when it is not there; kept by `stop`. */
  readonly dir: string;
  readonly config?: ManagedNatsConfig;
  /** Aborts a start in progress; nothing stays. */
  readonly signal?: AbortSignal;
  /** Time from SIGTERM to SIGKILL, ms. Default 5 000. */
  readonly graceMs?: number;
  /** How long a start may take, reading the store included, ms. Default 60 000. */
  readonly readyTimeoutMs?: number;
}

export interface RestartOptions {
  /** Ends the server as a crash does (SIGKILL). Default false. */
  readonly kill?: boolean;
}

/** Why the managed server is gone for good. `exited`: nobody asked for it. */
export interface NatsClosed {
  readonly reason: "stopped" | "exited";
  readonly code: number | null;
}

/** At a restart the ports are ours, but the system may still hold them for a moment. */
const PORT_RETRY_MS = 5_000;

type State =
  | { readonly kind: "running"; readonly launched: Launched }
  /** Taken down by `halt`; `restart` brings it up again. */
  | { readonly kind: "down" }
  | { readonly kind: "closed" };

/**
 * A nats-server that belongs to this process and cannot outlive it (see watchdog.ts).
 *
 * Invariants:
 * 1. Ports are chosen at the first start and kept by every restart, as is the data.
 * 2. `halt`, `restart` and `stop` run one after the other; `stop` cuts a restart short, and after it nothing starts.
 * 3. `closed` resolves once: after `stop`, or when the server ends by itself. It never rejects.
 */
export class ManagedNats implements AsyncDisposable {
  readonly dir: string;
  readonly port: number;
  readonly websocketPort: number;
  readonly closed: Promise<NatsClosed>;
  readonly #options: LaunchOptions;
  readonly #stopping: AbortController;
  #state: State;
  #turn: Promise<unknown> = Promise.resolve();
  #stopped: Promise<void> | undefined;
  #resolveClosed: (closed: NatsClosed) => void = () => undefined;

  private constructor(options: LaunchOptions, launched: Launched, stopping: AbortController) {
    this.dir = options.dir;
    this.port = launched.port;
    this.websocketPort = launched.websocketPort;
    const { port, websocketPort } = launched;
    this.#options = {
      ...options,
      config: { ...options.config, port, websocketPort },
      portRetryMs: PORT_RETRY_MS,
      signal: stopping.signal,
    };
    this.#stopping = stopping;
    this.#state = { kind: "running", launched };
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    this.#watch(launched);
  }

  /** Starts the server and resolves when it takes connections. Throws `NatsError`, or the signal's reason. */
  static async start(options: ManagedNatsOptions): Promise<ManagedNats> {
    const { binary, config = {}, graceMs = 5_000, readyTimeoutMs = 60_000 } = options;
    const stopping = new AbortController();
    const signal = options.signal ?? stopping.signal;
    const dir = resolve(options.dir);
    const resolved: LaunchOptions = { binary, dir, config, graceMs, readyTimeoutMs, portRetryMs: 0, signal };
    const launched = await launch(resolved);
    return new ManagedNats(resolved, launched, stopping);
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  get wsUrl(): string {
    return `ws://127.0.0.1:${this.websocketPort}`;
  }

  /** Process id of the server; undefined while it is down. */
  get pid(): number | undefined {
    return this.#state.kind === "running" ? this.#state.launched.pid : undefined;
  }

  /** Takes the server down until `restart`. */
  halt(options: RestartOptions = {}): Promise<void> {
    return this.#inTurn(() => this.#takeDown(options.kill === true));
  }

  /** Takes the server down, if it is up, and starts it with the same ports and data. */
  restart(options: RestartOptions = {}): Promise<void> {
    return this.#inTurn(async () => {
      await this.#takeDown(options.kill === true);
      const launched = await launch(this.#options);
      this.#state = { kind: "running", launched };
      this.#watch(launched);
    });
  }

  /** Ends the server for good; the folder stays. Idempotent, never rejects. */
  stop(): Promise<void> {
    if (this.#stopped === undefined) {
      this.#stopping.abort(stoppedError());
      this.#stopped = this.#afterTurn(async () => {
        const code = await this.#endServer(false);
        this.#close({ reason: "stopped", code });
      });
    }
    return this.#stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    return this.#afterTurn(async () => {
      if (this.#state.kind === "closed" || this.#stopping.signal.aborted) throw stoppedError();
      await work();
    });
  }

  #afterTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #takeDown(kill: boolean): Promise<void> {
    await this.#endServer(kill);
    this.#state = { kind: "down" };
  }

  async #endServer(kill: boolean): Promise<number | null> {
    if (this.#state.kind !== "running") return null;
    const { server } = this.#state.launched;
    // Set first: an exit that was asked for is not one that closes.
    this.#state = { kind: "down" };
    if (kill) server.kill();
    else server.end();
    return (await server.exited).code;
  }

  #watch(launched: Launched): void {
    void launched.server.exited.then(({ code }) => {
      if (this.#state.kind === "running" && this.#state.launched === launched)
        this.#close({ reason: "exited", code });
    });
  }

  #close(closed: NatsClosed): void {
    this.#state = { kind: "closed" };
    this.#resolveClosed(closed);
  }
}

function stoppedError(): NatsError {
  return new NatsError({
    code: "trellis.nats.stopped",
    message: "the managed nats-server is stopped",
    hint: "Start a new one.",
  });
}
