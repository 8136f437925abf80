import Type from "typebox";
import { describe, expect, test } from "vitest";
import {
  consumer,
  DefinitionError,
  defineApi,
  defineError,
  event,
  exponential,
  job,
  kv,
  operation,
  rpc,
  store,
} from "../index.ts";

const billing = defineApi("acme.billing@v1", {
  rpc: { "Invoices.Create": rpc(), "Invoices.Void": rpc() },
  events: { "Invoice.Paid": event({ payload: Type.Object({ id: Type.String() }) }) },
});

/** The message of the DefinitionError that `define` throws. */
function refusal(define: () => unknown): string {
  try {
    define();
  } catch (error) {
    expect(error).toBeInstanceOf(DefinitionError);
    return (error as DefinitionError).message;
  }
  throw new Error("nothing was refused");
}

describe("options are checked when declared", () => {
  test.each<[string, () => unknown, RegExp]>([
    [
      "attempts",
      () => job({ retry: { attempts: 0 } }),
      /job retry attempts: 0 is not a whole number of at least 1/,
    ],
    [
      "attempts and delays",
      () => job({ retry: { attempts: 3, backoff: ["5s"] } }),
      /3 attempts need exactly 2 delays, not 1/,
    ],
    [
      "a delay of nothing",
      () => job({ retry: { attempts: 2, backoff: [0] } }),
      /job retry backoff: 0 will not do/,
    ],
    ["concurrency", () => job({ concurrency: 1.5 }), /job concurrency: 1\.5/],
    ["deadline", () => job({ deadline: "-5s" }), /job deadline/],
    [
      "heartbeats",
      () => job({ keyConcurrency: { key: ["x"], heartbeatTtl: "1s" } }),
      /every slot would look abandoned/,
    ],
    ["an empty key", () => job({ keyConcurrency: { key: [] } }), /needs a segment/],
    [
      "a key that leads nowhere",
      () => job({ payload: Type.Object({ a: Type.String() }), keyConcurrency: { key: ["/b"] } }),
      /"\/b" leads nowhere/,
    ],
    [
      "a short dedup horizon",
      () => job({ retention: "7d", dedupHorizon: "1d" }),
      /shorter than the retention/,
    ],
    ["cron", () => job({ schedules: { nightly: { cron: "daily" } } }), /"nightly".*1 fields/],
    ["rate limit", () => job({ rateLimit: { limit: 0, per: "1s" } }), /job rateLimit limit/],
    ["queue", () => job({ queue: { maxQueuedPerKey: -1 } }), /maxQueuedPerKey: -1/],
    ["history", () => kv({ value: Type.String(), history: 65 }), /at most 64/],
    ["ttl", () => kv({ value: Type.String(), ttl: "1w" as "1d" }), /"1w" will not do.*"5s", "30m" or "1d"/],
    [
      "migrations",
      () => kv({ value: Type.String(), version: 2, migrate: { 2: (x) => x } }),
      /2 is not a version older than 2/,
    ],
    ["size", () => store({ maxObject: "64MB2" as "64MB" }), /store maxObject/],
    [
      "replay",
      () => consumer({ events: [billing.events["Invoice.Paid"]], replay: { since: "yesterday" } }),
      /not an instant/,
    ],
    ["factor", () => exponential({ base: "1s", factor: 0.5 }), /factor/],
    ["jitter", () => exponential({ base: "1s", jitter: 2 }), /jitter/],
    ["upload", () => operation({ upload: { maxSize: 0 } }), /upload maxSize/],
    ["error name", () => defineError("outOfStock"), /beginning with a capital/],
  ])("%s", (_, define, message) => {
    expect(refusal(define)).toMatch(message);
  });

  test("defaults follow the number of attempts", () => {
    expect(job().policy.retry).toEqual({
      attempts: 5,
      backoff: { kind: "delays", delaysMs: [5_000, 30_000, 120_000, 600_000] },
    });
    expect(job({ retry: { attempts: 2 } }).policy.retry.backoff).toEqual({
      kind: "delays",
      delaysMs: [5_000],
    });
    expect(job({ retry: { backoff: exponential({ base: "1s", max: "1m" }) } }).policy.retry).toEqual({
      attempts: 5,
      backoff: { kind: "exponential", baseMs: 1_000, factor: 2, maxMs: 60_000, jitter: 0 },
    });
  });
});
