import { type AddressInfo, createConnection, createServer, type Server, type Socket } from "node:net";
import { FaultyPipe, type Weather } from "./faulty-pipe.ts";

export interface FaultProxyOptions {
  /** Where connections go: a URL with a port (`nats://127.0.0.1:4222`, `ws://...`) or host and port. */
  readonly target: string | { readonly host: string; readonly port: number };
  /** Port to listen on. Default: a free one. */
  readonly port?: number;
}

/** A TCP proxy on loopback whose network can be made bad. Every setting holds for old and new connections. */
export interface FaultProxy extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** `host:port`, to put behind a scheme. */
  readonly address: string;
  /** Every byte arrives this much later, in both directions; 0 ends it. */
  delay(ms: number): void;
  /** At most so many bytes a second in each direction of a connection; `Infinity` ends it. */
  throttle(bytesPerSecond: number): void;
  /** A partition: connections stay open, and are even accepted, but nothing passes until it is switched off. */
  blackhole(on: boolean): void;
  /** Resets all connections. */
  cut(): void;
  /** New connections are refused, as where nothing listens. Resolves when that holds. */
  refuse(on: boolean): Promise<void>;
  /** Number of open connections. */
  connections(): number;
  stop(): Promise<void>;
}

export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const target = resolveTarget(options.target);
  const weather: Weather = { delayMs: 0, bytesPerSecond: Number.POSITIVE_INFINITY, blackhole: false };
  const links = new Set<Link>();
  const accept = (client: Socket) => {
    const link = new Link(client, createConnection(target), weather);
    links.add(link);
    client.once("close", () => links.delete(link));
  };
  const cut = () => {
    for (const link of links) link.cut();
  };
  const listening = (server: Server) => server.address() as AddressInfo | null;
  let server = await listen(accept, options.port ?? 0);
  const { port } = listening(server) ?? { port: 0 };
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= closeServer(server).then(() => undefined);
    cut();
    return stopped;
  };
  const changed = () => {
    for (const link of links) link.weatherChanged();
  };
  return {
    host: "127.0.0.1",
    port,
    address: `127.0.0.1:${port}`,
    delay(ms) {
      weather.delayMs = ms;
    },
    throttle(bytesPerSecond) {
      weather.bytesPerSecond = bytesPerSecond;
    },
    blackhole(on) {
      weather.blackhole = on;
      changed();
    },
    cut,
    async refuse(on) {
      if (stopped !== undefined) throw new Error("the proxy is stopped");
      if (on) await closeServer(server);
      else if (!server.listening) server = await listen(accept, port);
    },
    connections: () => links.size,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** One client and its connection to the target. They end together. */
class Link {
  readonly #sockets: readonly [Socket, Socket];
  readonly #pipes: readonly [FaultyPipe, FaultyPipe];

  constructor(client: Socket, upstream: Socket, weather: Weather) {
    this.#sockets = [client, upstream];
    this.#pipes = [new FaultyPipe(client, upstream, weather), new FaultyPipe(upstream, client, weather)];
    for (const socket of this.#sockets) {
      socket.setNoDelay(true);
      socket.on("error", () => this.cut());
      socket.once("close", () => this.#end());
    }
  }

  weatherChanged(): void {
    for (const pipe of this.#pipes) pipe.weatherChanged();
  }

  cut(): void {
    for (const socket of this.#sockets) {
      // A reset, not an orderly end; on a socket that is still connecting only `destroy` works.
      if (socket.connecting) socket.destroy();
      else socket.resetAndDestroy();
    }
    this.#end();
  }

  #end(): void {
    for (const pipe of this.#pipes) pipe.stop();
    for (const socket of this.#sockets) socket.destroy();
  }
}

function resolveTarget(target: FaultProxyOptions["target"]): { host: string; port: number } {
  if (typeof target !== "string") return target;
  const url = new URL(target.includes("://") ? target : `tcp://${target}`);
  if (url.port === "") throw new Error(`the target ${target} names no port`);
  return { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port) };
}

function listen(accept: (client: Socket) => void, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer({ allowHalfOpen: true }, accept);
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      server.off("error", reject);
      resolve(server);
    });
  });
}

/** Stops listening; `Server.close` would call back only after the last connection, which here goes on. */
function closeServer(server: Server): Promise<void> {
  if (!server.listening) return Promise.resolve();
  server.close();
  return new Promise((resolve) => setImmediate(resolve));
}
