import { healthSubject } from "@trellis/protocol";
import { connectServiceWith, nodePlatform } from "@trellis/runtime/node";
import { eventually, startTrellis } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { workService } from "./contract.ts";
import { pause } from "./kit.ts";

interface Sample {
  readonly status: string;
  readonly checks: readonly { readonly name: string; readonly status: string; readonly summary?: string }[];
}

describe("health", () => {
  it("beats at once and at every interval, whatever a check does, and stops with the connection", async () => {
    await using trellis = await startTrellis();
    const samples: Sample[] = [];
    // What the process hands to its socket: the heartbeats are recorded where they leave it.
    const dial: typeof nodePlatform.dial = async (options) => {
      const nats = await nodePlatform.dial(options);
      const publish = nats.publish.bind(nats);
      nats.publish = (subject, payload, rest) => {
        if (subject.startsWith(prefix) && payload instanceof Uint8Array) {
          const { payload: text } = JSON.parse(new TextDecoder().decode(payload)) as { payload: string };
          samples.push(JSON.parse(text) as Sample);
        }
        publish(subject, payload, rest);
      };
      return nats;
    };
    const prefix = healthSubject({ kind: "service", deployment: "d", connection: "c" }).split(".d.")[0] ?? "";
    const service = await connectServiceWith(
      {
        participant: workService,
        trellisUrl: trellis.url,
        runtime: { log: false, health: { publishIntervalMs: 100 } },
      },
      {
        platform: {
          ...nodePlatform,
          dial,
          discover: () => ({ production: false, devToken: trellis.devToken }),
        },
      },
    ).orThrow();
    // What a turn publishes leaves it at its end.
    await new Promise((resolve) => setImmediate(resolve));
    expect(samples).toHaveLength(1);
    expect(samples[0]?.status).toBe("ok");
    service.health.add("throws", () => {
      throw new Error("secret");
    });
    service.health.add("rejects", () => Promise.reject(new Error("secret")));
    service.health.add("junk", () => null as never);
    service.health.add("fine", () => ({ status: "ok" }));
    expect(() => service.health.add("fine", () => ({ status: "ok" }))).toThrow("fine");
    await eventually(() => samples.length >= 4);
    const last = samples.at(-1);
    expect(last?.status).toBe("failed");
    const statuses = Object.fromEntries(last?.checks.map(({ name, status }) => [name, status]) ?? []);
    expect(statuses).toMatchObject({
      nats: "ok",
      throws: "failed",
      rejects: "failed",
      junk: "failed",
      fine: "ok",
    });
    expect(JSON.stringify(samples)).not.toContain("secret");

    // A check that hangs: the beat waits for it, but never overlaps, and stop does not wait for it.
    const remove = service.health.add("hangs", () => new Promise<never>(() => {}));
    await pause(150);
    const before = samples.length;
    const started = performance.now();
    remove();
    await service.stop();
    expect(performance.now() - started).toBeLessThan(1_000);
    const after = samples.length;
    expect(after - before).toBeLessThanOrEqual(1);
    await pause(250);
    expect(samples).toHaveLength(after);
  });
});
