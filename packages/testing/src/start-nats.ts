import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  findNatsServer,
  ManagedNats,
  type NatsBinary,
  type NatsClosed,
  type PlatformPublicKeys,
} from "@trellis/control-plane/nats";

export interface StartNatsOptions {
  /** Raw lines of nats.conf, added at the end. */
  readonly config?: string;
  /** Accounts and callout of Trellis. Default: one open account with JetStream. */
  readonly keys?: PlatformPublicKeys;
  /** Aborts the start. */
  readonly signal?: AbortSignal;
}

/** A nats-server for one test: own ports, own folder, gone afterwards. */
export interface TestNats extends AsyncDisposable {
  /** `nats://127.0.0.1:<port>` */
  readonly url: string;
  /** `ws://127.0.0.1:<port>` */
  readonly wsUrl: string;
  readonly port: number;
  readonly websocketPort: number;
  /** Holds nats.conf, nats.log and the JetStream data; removed by `stop`. */
  readonly dir: string;
  /** Undefined while it is down. */
  readonly pid: number | undefined;
  readonly closed: Promise<NatsClosed>;
  /** Takes it down and up again, same ports and data. `kill`: as after a crash. */
  restart(options?: { readonly kill?: boolean }): Promise<void>;
  /** SIGKILL; it stays down until `restart`. */
  kill(): Promise<void>;
  /** Ends it and removes its folder. Idempotent. */
  stop(): Promise<void>;
}

let binary: Promise<NatsBinary> | undefined;

/** Starts a real nats-server with JetStream on loopback. Safe to call many times at once, also from many processes. */
export async function startNats(options: StartNatsOptions = {}): Promise<TestNats> {
  // A failed search is not kept: the next test may find what this one could not fetch.
  binary ??= findNatsServer().catch((error: unknown) => {
    binary = undefined;
    throw error;
  });
  const { path } = await binary;
  const dir = await mkdtemp(join(tmpdir(), "trellis-test-nats-"));
  try {
    const { config, keys, signal } = options;
    const managed = await ManagedNats.start({
      binary: path,
      dir,
      config: { ...(config !== undefined && { extra: config }), ...(keys !== undefined && { keys }) },
      ...(signal !== undefined && { signal }),
    });
    return testNats(managed);
  } catch (error) {
    await removeDir(dir);
    throw error;
  }
}

function testNats(managed: ManagedNats): TestNats {
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= managed.stop().then(() => removeDir(managed.dir));
    return stopped;
  };
  return {
    url: managed.url,
    wsUrl: managed.wsUrl,
    port: managed.port,
    websocketPort: managed.websocketPort,
    dir: managed.dir,
    get pid() {
      return managed.pid;
    },
    closed: managed.closed,
    restart: (options) => managed.restart(options),
    kill: () => managed.halt({ kill: true }),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function removeDir(dir: string): Promise<void> {
  await rm(dir, { recursive: true, force: true, maxRetries: 3 });
}
