import {
  type HealthCheck,
  type Heartbeat,
  healthSubject,
  signHeartbeat,
  toBase64Url,
} from "@trellis/protocol";
import type { Link } from "../connect/link.ts";
import { sleep } from "../lifecycle/backoff.ts";
import type { HealthChecks } from "./health.ts";

export interface HeartbeatOptions {
  readonly link: Link;
  readonly checks: HealthChecks;
  readonly intervalMs: number;
  load(): { readonly inFlight: number; readonly zombies: number };
}

/**
 * Publishes a signed sample at once and then at every interval. A slow sample delays the next, it never
 * overlaps it; a failure is a warning and nothing more; the end of the connection is the end of it.
 */
export class Heartbeats {
  readonly #options: HeartbeatOptions;
  readonly #stopping = new AbortController();
  readonly #startedAt: number;
  #pause = new AbortController();
  #isDue = false;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#startedAt = options.link.clock.monotonic();
  }

  /** Resolves when the first sample was attempted. */
  async start(): Promise<void> {
    await this.#beat();
    void this.#run();
  }

  /** Publishes the next sample without waiting for its interval: there is something new to tell. */
  hasten(): void {
    this.#isDue = true;
    this.#pause.abort();
  }

  /** Nothing is published any more; a check that hangs is not waited for. */
  stop(): void {
    this.#stopping.abort();
    this.#pause.abort();
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#pause = new AbortController();
      const { signal } = this.#pause;
      // Ended early by whoever hastens or stops it.
      if (!this.#isDue)
        await sleep(this.#options.intervalMs, { signal, background: true }).catch(() => undefined);
      this.#isDue = false;
      if (!this.#stopping.signal.aborted) await this.#beat();
    }
  }

  async #beat(): Promise<void> {
    const { link, checks } = this.#options;
    try {
      const results = await checks.check();
      if (this.#stopping.signal.aborted) return;
      const heartbeat = this.#sample(results);
      const signed = signHeartbeat(link.platform.port, { heartbeat, key: link.keys.session });
      const { deployment, connection } = heartbeat;
      link.broker.publish(
        healthSubject({ kind: "service", deployment, connection }),
        new TextEncoder().encode(JSON.stringify(signed)),
      );
    } catch (error) {
      if (!link.isClosed) link.log.warn({ err: error }, "Could not publish a heartbeat");
    }
  }

  #sample(results: readonly HealthCheck[]): Heartbeat {
    const { link, checks, intervalMs } = this.#options;
    const { session, clock, platform } = link;
    const [name = "unknown", version = "unknown"] = Object.entries(platform.versions)[0] ?? [];
    const { info } = checks;
    return {
      version: 1,
      kind: "service",
      participant: session.participant,
      deployment: session.assignment.deployment,
      instance: session.assignment.instance,
      connection: session.connection,
      sessionKey: toBase64Url(link.keys.session.publicKey),
      authorization: session.digestText,
      name: session.assignment.name,
      at: clock.now(),
      status: worst(results),
      uptimeMs: Math.round(clock.monotonic() - this.#startedAt),
      intervalMs,
      runtime: { trellis: "0.1.0", platform: name, platformVersion: version },
      ...(info === undefined ? {} : { info: plainInfo(info) }),
      checks: [...results],
      load: this.#options.load(),
    };
  }
}

function worst(results: readonly HealthCheck[]): "ok" | "degraded" | "failed" {
  if (results.some(({ status }) => status === "failed")) return "failed";
  return results.some(({ status }) => status === "degraded") ? "degraded" : "ok";
}

function plainInfo({ version, info }: { version?: string; info?: Readonly<Record<string, unknown>> }) {
  return {
    ...(version === undefined ? {} : { version }),
    ...(info === undefined ? {} : { info: { ...info } }),
  };
}
