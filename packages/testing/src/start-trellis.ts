import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AnyParticipant } from "@trellis/contract";
import { type ControlPlane, type ControlPlaneConfig, startControlPlane } from "@trellis/control-plane";
import { type ConnectArgs, type ConnectedClient } from "@trellis/runtime";
import { connectClientWith, connectServiceWith, nodePlatform, type Platform } from "@trellis/runtime/node";
import type { ConnectedService } from "@trellis/runtime/service";

export interface StartTrellisOptions {
  /** Passed to the control plane; the folder and the mode (`dev`) are the kit's own. */
  readonly controlPlane?: Omit<Partial<ControlPlaneConfig>, "dataDir" | "mode">;
}

/** What a test may change about a connect; identity and address come from the kit. */
export type TestConnectOptions = Omit<Partial<ConnectArgs<AnyParticipant>>, "participant"> & {
  /** Replaced parts of the platform, for instance an address list that leads through a fault proxy. */
  readonly platform?: Partial<Platform>;
};

/** A whole Trellis for one test: control plane in process, nats-server as a child, own ports and folder. */
export interface TestTrellis extends AsyncDisposable {
  /** Origin of the control plane. */
  readonly url: string;
  /** Fingerprint of the root key. */
  readonly root: string;
  readonly devToken: string;
  readonly dir: string;
  readonly controlPlane: ControlPlane;
  /** Connects a service, lets `setup` register its handlers, and starts it. It is stopped with the kit. */
  service<P extends AnyParticipant>(
    participant: P,
    setup: (service: ConnectedService<P>) => void | Promise<void>,
    options?: TestConnectOptions,
  ): Promise<ConnectedService<P>>;
  /** Connects a client; it is closed with the kit. */
  client<P extends AnyParticipant>(participant: P, options?: TestConnectOptions): Promise<ConnectedClient<P>>;
  /** Environment of a child process that is to connect. */
  env(): Record<string, string>;
  /** Takes nats-server down and up again with its ports and data; `kill`: as after a crash. */
  restartNats(options?: { readonly kill?: boolean }): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a Trellis in dev mode. Safe to call many times at once, also from many processes. */
export async function startTrellis(options: StartTrellisOptions = {}): Promise<TestTrellis> {
  const dir = await mkdtemp(join(tmpdir(), "trellis-test-"));
  try {
    const controlPlane = await startControlPlane({ ...options.controlPlane, dataDir: dir, mode: "dev" });
    return new RunningTrellis(dir, controlPlane);
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

class RunningTrellis implements TestTrellis {
  readonly dir: string;
  readonly controlPlane: ControlPlane;
  readonly #open: { close(): Promise<void> }[] = [];
  #stopping: Promise<void> | undefined;

  constructor(dir: string, controlPlane: ControlPlane) {
    this.dir = dir;
    this.controlPlane = controlPlane;
  }

  get url(): string {
    return this.controlPlane.url;
  }

  get root(): string {
    return this.controlPlane.rootFingerprint;
  }

  get devToken(): string {
    return this.controlPlane.devToken ?? "";
  }

  async service<P extends AnyParticipant>(
    participant: P,
    setup: (service: ConnectedService<P>) => void | Promise<void>,
    options: TestConnectOptions = {},
  ): Promise<ConnectedService<P>> {
    const { platform, ...args } = options;
    const service = await connectServiceWith(this.#args(participant, args), this.#deps(platform)).orThrow();
    this.#open.push({ close: () => service.stop({ timeout: 2_000 }) });
    await setup(service);
    await service.start();
    return service;
  }

  async client<P extends AnyParticipant>(
    participant: P,
    options: TestConnectOptions = {},
  ): Promise<ConnectedClient<P>> {
    const { platform, ...args } = options;
    const client = await connectClientWith(this.#args(participant, args), this.#deps(platform)).orThrow();
    this.#open.push({ close: () => client.close() });
    return client;
  }

  env(): Record<string, string> {
    return { TRELLIS_URL: this.url, TRELLIS_DEV_TOKEN: this.devToken, TRELLIS_ROOT: this.root };
  }

  async restartNats(options: { readonly kill?: boolean } = {}): Promise<void> {
    const { nats } = this.controlPlane;
    if (nats === undefined) throw new Error("This Trellis does not manage its nats-server.");
    await nats.restart(options);
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #stop(): Promise<void> {
    await Promise.allSettled(this.#open.map((opened) => opened.close()));
    await this.controlPlane.stop();
    await rm(this.dir, { recursive: true, force: true });
  }

  #args<P extends AnyParticipant>(
    participant: P,
    options: Omit<TestConnectOptions, "platform">,
  ): ConnectArgs<P> {
    const { runtime } = options;
    return {
      trellisUrl: this.url,
      root: this.root,
      ...options,
      runtime: { log: false, ...runtime },
      participant,
    };
  }

  /** The kit's own surroundings: nothing of the developer's environment reaches a test. */
  #deps(platform: Partial<Platform> = {}): { platform: Platform } {
    const discover = () => ({ production: false, devToken: this.devToken });
    return { platform: { ...nodePlatform, discover, ...platform } };
  }
}
