import { err, ok } from "@trellis/result";
import { eventually } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Odd } from "./contract.ts";
import {
  type LogRecord,
  pause,
  recordingLog,
  startWork,
  timed,
  type Working,
  watchUnhandled,
} from "./kit.ts";

const secret = "postgres://admin:hunter2@db/internal";

function cyclic(): Error {
  const error = new Error(secret);
  error.cause = new Error("inner", { cause: error });
  return error;
}

/** Everything that is not a plain value; each gives what the handler returns, or throws. */
const ways: Record<string, () => unknown> = {
  "throws an error": () => {
    throw new Error(secret);
  },
  rejects: async () => {
    throw new Error(secret);
  },
  "throws null": () => {
    throw null;
  },
  "rejects with undefined": () => Promise.reject(undefined),
  "throws a string": () => {
    throw secret;
  },
  "throws a symbol": () => {
    throw Symbol(secret);
  },
  "throws a frozen object": () => {
    throw Object.freeze({ message: secret });
  },
  "throws a frozen error": () => {
    throw Object.freeze(new Error(secret));
  },
  "throws an error with a cyclic cause": () => {
    throw cyclic();
  },
  "throws an AggregateError": () => {
    throw new AggregateError([new Error(secret)], secret);
  },
  "throws an object whose getters throw": () => {
    throw new Proxy(
      {},
      {
        get() {
          throw new Error(secret);
        },
      },
    );
  },
  "returns a function": () => () => 1,
  "returns a bigint": () => 10n,
  "returns a Map": () => new Map(),
  "returns NaN": () => Number.NaN,
  "returns a cycle": () => {
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    return cycle;
  },
  "returns an object whose getter throws": () => ({
    get value() {
      throw new Error(secret);
    },
  }),
  "returns a proxy that throws": () =>
    new Proxy(
      {},
      {
        get() {
          throw new Error(secret);
        },
        has() {
          throw new Error(secret);
        },
        ownKeys() {
          throw new Error(secret);
        },
        getPrototypeOf() {
          throw new Error(secret);
        },
      },
    ),
  "resolves to a proxy that throws": async () => ({
    inner: new Proxy(
      {},
      {
        ownKeys() {
          throw new Error(secret);
        },
      },
    ),
  }),
  "returns a thenable that throws": () => ({
    // biome-ignore lint/suspicious/noThenProperty: the point of the case
    then() {
      throw new Error(secret);
    },
  }),
  "returns a thenable that settles twice": () => ({
    // biome-ignore lint/suspicious/noThenProperty: the point of the case
    then(_ok: unknown, fail: (error: unknown) => void) {
      fail(new Error(secret));
      fail(new Error(secret));
    },
  }),
  "returns an Err of nothing": () => err(undefined),
  "throws a declared error whose data does not fit": () => {
    throw Object.assign(new Odd({ data: { n: 1, text: "" } }), { data: { n: "no" } });
  },
};

describe("a handler that misbehaves", () => {
  let working: Working;
  const log = recordingLog();
  const unhandled = watchUnhandled();
  let state = { signal: new AbortController().signal };

  beforeAll(async () => {
    working = await startWork({
      service: { runtime: { log } },
      setup({ handle }) {
        handle.rpc.work.echo(({ input }) => input);
        handle.rpc.work.fail(({ input }) => ways[input.how]?.());
        handle.rpc.work.give(({ input }): unknown => {
          if (input.what === "declared") return err(new Odd({ data: { n: 7, text: "kept" } })) as never;
          if (input.what === "ok") return ok({ fine: true }) as never;
          return undefined;
        });
        handle.rpc.work.count(() => undefined as never);
        handle.rpc.work.slow(async ({ input, context }) => {
          state = { signal: context.signal };
          await pause(input.ms);
          return { n: input.n, by: "late" };
        });
      },
    });
  });
  afterAll(() => working[Symbol.asyncDispose]());

  for (const how of Object.keys(ways)) {
    it(`${how}: one UnexpectedError at the caller, the text only in the log`, async () => {
      const { ms, value } = await timed(() => working.client.rpc.work.fail({ how }, { timeout: 3_000 }));
      expect(value.isErr() && value.error.type).toBe("UnexpectedError");
      expect(JSON.stringify(value)).not.toContain("hunter2");
      expect(ms).toBeLessThan(1_000);
      const id = value.isErr() ? value.error.id : "";
      const logged = (record: LogRecord) => record.level === "error" && record.fields["errorId"] === id;
      expect(log.records.some(logged)).toBe(true);
      expect((await working.client.rpc.work.echo({ text: "still here" })).isOk()).toBe(true);
    });
  }

  it("returns undefined: an UnexpectedError where the contract wants a value, null where it takes anything", async () => {
    const count = await working.client.rpc.work.count({ n: 1 });
    expect(count.isErr() && count.error.type).toBe("UnexpectedError");
    expect((await working.client.rpc.work.give({ what: "nothing" })).orThrow()).toBeNull();
  });

  it("gives an Ok, and an Err that the action does not declare", async () => {
    expect((await working.client.rpc.work.give({ what: "ok" })).orThrow()).toEqual({ fine: true });
    const given = await working.client.rpc.work.give({ what: "declared" });
    expect(given.isErr() && given.error.type).toBe("UnexpectedError");
  });

  it("goes on after the caller's deadline: a TimeoutError there, the signal here, then a dropped answer", async () => {
    const { ms, value } = await timed(() =>
      working.client.rpc.work.slow({ n: 1, ms: 600 }, { timeout: 200 }),
    );
    expect(value.isErr() && value.error.type).toBe("TimeoutError");
    expect(ms).toBeLessThan(450);
    await eventually(() => state.signal.aborted);
    await pause(600);
    expect((await working.client.rpc.work.echo({ text: "x" })).isOk()).toBe(true);
  });

  it("is served by a logger that throws", async () => {
    const broken = () => {
      throw new Error("the disk is full");
    };
    const log = { debug: broken, info: broken, warn: broken, error: broken };
    await using other = await startWork({
      service: { runtime: { log } },
      setup: ({ handle }) => handle.rpc.work.fail(() => Promise.reject(new Error(secret))),
    });
    const failed = await other.client.rpc.work.fail({ how: "" }, { timeout: 2_000 });
    expect(failed.isErr() && failed.error.type).toBe("UnexpectedError");
  });

  it("leaves no unhandled rejection behind", async () => {
    await pause(20);
    expect(unhandled.seen).toEqual([]);
    unhandled[Symbol.dispose]();
  });
});
