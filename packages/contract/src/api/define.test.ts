import Type from "typebox";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  consumer,
  DefinitionError,
  defineApi,
  defineApp,
  defineError,
  defineService,
  digestOf,
  event,
  exponential,
  feed,
  job,
  kv,
  operation,
  reserved,
  rpc,
  state,
  store,
  use,
} from "../index.ts";

const OutOfStock = defineError("OutOfStock", {
  data: Type.Object({ sku: Type.String(), left: Type.Integer() }),
});

const orders = defineApi("acme.orders@v1", {
  title: "Orders",
  rpc: {
    "Orders.Create": rpc({
      title: "Creates an order",
      input: Type.Object({
        title: Type.String({ title: "Title", description: "A title" }),
        key: Type.String(),
      }),
      output: z.object({ id: z.string().describe("Id") }),
      errors: [OutOfStock],
      idempotent: { key: "/key" },
    }),
    Ping: rpc(),
  },
  events: {
    "Order.Placed": event({
      payload: Type.Object({ id: Type.String(), region: Type.String() }),
      params: ["region"],
    }),
  },
  operations: {
    "Orders.Export": operation({ signals: { pause: Type.Boolean() }, upload: { maxSize: "64MiB" } }),
  },
  feeds: { "Orders.Live": feed({ event: Type.Object({ id: Type.String() }) }) },
});
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

describe("defineApi", () => {
  test("gives actions their names, and an artifact without annotations", () => {
    expect(orders.rpc["Orders.Create"]).toMatchObject({
      kind: "rpc",
      name: "Orders.Create",
      api: "acme.orders@v1",
    });
    expect(orders.artifact).toEqual({
      format: "trellis.api/v1",
      id: "acme.orders@v1",
      rpc: {
        "Orders.Create": {
          input: {
            type: "object",
            required: ["title", "key"],
            properties: { title: { type: "string" }, key: { type: "string" } },
          },
          output: { type: "object", required: ["id"], properties: { id: { type: "string" } } },
          errors: {
            OutOfStock: {
              type: "object",
              required: ["sku", "left"],
              properties: { sku: { type: "string" }, left: { type: "integer" } },
            },
          },
          idempotent: { key: "/key" },
          coalesce: true,
          download: false,
        },
        Ping: { input: null, output: null, errors: {}, idempotent: false, coalesce: true, download: false },
      },
      events: {
        "Order.Placed": {
          payload: {
            type: "object",
            required: ["id", "region"],
            properties: { id: { type: "string" }, region: { type: "string" } },
          },
          params: ["region"],
        },
      },
      operations: {
        "Orders.Export": {
          input: null,
          output: null,
          progress: null,
          update: null,
          signals: { pause: { type: "boolean" } },
          errors: {},
          cancel: false,
          upload: { store: null, maxBytes: 64 * 2 ** 20 },
        },
      },
      feeds: {
        "Orders.Live": {
          input: null,
          event: { type: "object", required: ["id"], properties: { id: { type: "string" } } },
          errors: {},
        },
      },
    });
    expect(orders.digest).toBe(digestOf(orders.artifact));
    expect(orders.digest).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });

  test("the digest sees meaning, not order or words", () => {
    const a = defineApi("acme.a@v1", {
      rpc: { "A.B": rpc({ input: Type.String({ title: "x" }) }), "A.C": rpc() },
    });
    const b = defineApi("acme.a@v1", {
      title: "A",
      rpc: { "A.C": rpc(), "A.B": rpc({ input: Type.String() }) },
    });
    const c = defineApi("acme.a@v1", { rpc: { "A.B": rpc({ input: Type.Number() }), "A.C": rpc() } });
    expect(a.digest).toBe(b.digest);
    expect(a.digest).not.toBe(c.digest);
  });

  test("one action may stand in two APIs", () => {
    const ping = rpc();
    const one = defineApi("acme.one@v1", { rpc: { "One.Ping": ping } });
    const two = defineApi("acme.two@v1", { rpc: { "Two.Ping": ping } });
    expect([one.rpc["One.Ping"].name, two.rpc["Two.Ping"].name, ping.name]).toEqual([
      "One.Ping",
      "Two.Ping",
      "",
    ]);
  });

  test.each([
    "orders@v1",
    "Acme.orders@v1",
    "acme.orders",
    "acme.orders@v0",
    "acme..orders@v1",
    "acme.orders@v1 ",
    "acme.or_ders@v1",
    "",
  ])("refuses the id %j", (id) => {
    expect(refusal(() => defineApi(id, {}))).toMatch(/not an API id.*acme\.orders@v1/);
  });

  test("keeps the namespace of the platform", () => {
    expect(refusal(() => defineApi("trellis.core@v1", {}))).toMatch(/belongs to the platform/);
    expect(defineApi("trellis.core@v1", {}, reserved).id).toBe("trellis.core@v1");
    expect(refusal(() => defineService("trellis.control-plane", {}))).toMatch(/belongs to the platform/);
    expect(defineService("trellis.control-plane", {}, reserved).id).toBe("trellis.control-plane");
  });

  test("names both of two names that collide", () => {
    const message = refusal(() =>
      defineApi("acme.a@v1", { rpc: { "Orders.Items.List": rpc(), "Orders.ItemsList": rpc() } }),
    );
    expect(message).toContain(
      '"Orders.Items.List" and "Orders.ItemsList" would both be called orders.itemsList',
    );
    expect(
      refusal(() =>
        defineApi("acme.a@v1", {
          feeds: { "a.b": feed({ event: Type.String() }), "A.B": feed({ event: Type.String() }) },
        }),
      ),
    ).toMatch(/"a\.b" and "A\.B"/);
    defineApi("acme.a@v1", { rpc: { "A.B": rpc() }, feeds: { "A.B": feed({ event: Type.String() }) } });
  });

  test.each(["", ".", "A.", ".A", "A..B", "A B", "A_B", "1A", "A.1", "A-B", "Ä.B", "A.*", "A.>"])(
    "refuses the name %j",
    (name) => {
      expect(refusal(() => defineApi("acme.a@v1", { rpc: { [name]: rpc() } }))).toContain(
        JSON.stringify(name),
      );
    },
  );

  test("refuses names that would break a facade", () => {
    for (const name of ["Orders.Then", "Constructor.Make", "Prototype"]) {
      expect(refusal(() => defineApi("acme.a@v1", { rpc: { [name]: rpc() } }))).toMatch(
        /JavaScript treats specially/,
      );
    }
  });

  test("refuses schemas that cannot be JSON, naming the place", () => {
    // The types refuse these too; a schema whose type is not known to the compiler gets this far.
    const untyped = (schema: object) => Type.Unsafe<string>(schema);
    const place = /API acme\.a@v1, rpc "A\.B", .*\/properties\/n/;
    expect(
      refusal(() =>
        defineApi("acme.a@v1", {
          rpc: { "A.B": rpc({ input: untyped(Type.Object({ n: Type.BigInt() })) }) },
        }),
      ),
    ).toMatch(place);
    expect(
      refusal(() => defineApi("acme.a@v1", { rpc: { "A.B": rpc({ input: z.coerce.date() }) } })),
    ).toMatch(/rpc "A\.B", .*zod/);
    expect(
      refusal(() =>
        defineApi("acme.a@v1", {
          rpc: { "A.B": rpc({ input: Type.Object({ n: Type.String({ pattern: "^(a+)+$" }) }) }) },
        }),
      ),
    ).toMatch(/\/properties\/n\/pattern.*exponential time.*in one way only/);
    expect(
      refusal(() =>
        defineApi("acme.a@v1", { rpc: { "A.B": rpc({ input: z.string().regex(/^([a-z]+-?)*$/) }) } }),
      ),
    ).toMatch(/exponential/);
    expect(
      refusal(() =>
        defineApi("acme.a@v1", { rpc: { "A.B": rpc({ input: untyped({ type: "string", pattern: "(" }) }) } }),
      ),
    ).toMatch(/no regular expression/);
  });

  test("refuses params, keys and errors that are not there or stand there twice", () => {
    expect(refusal(() => rpc({ errors: [OutOfStock, OutOfStock] }))).toMatch(/"OutOfStock" is listed twice/);
    expect(
      refusal(() =>
        defineApi("acme.a@v1", {
          rpc: { "A.B": rpc({ input: Type.Object({ id: Type.String() }), idempotent: { key: "/key" } }) },
        }),
      ),
    ).toMatch(/"\/key" leads nowhere.*There is: id/);
    expect(
      refusal(() => defineApi("acme.a@v1", { rpc: { "A.B": rpc({ idempotent: { key: "/key" } }) } })),
    ).toMatch(/no schema/);
    expect(refusal(() => event({ payload: Type.Object({ a: Type.String() }), params: ["a", "a"] }))).toMatch(
      /twice/,
    );
    expect(refusal(() => operation({ signals: { "a b": Type.String() } }))).toMatch(/name for a signal/);
  });
});

describe("use", () => {
  test("takes everything, or what is selected", () => {
    expect(Object.keys(use(billing).rpc)).toEqual(["Invoices.Create", "Invoices.Void"]);
    expect(Object.keys(use(billing).events)).toEqual(["Invoice.Paid"]);
    const some = use(billing, { rpc: ["Invoices.Create"] });
    expect([Object.keys(some.rpc), Object.keys(some.events)]).toEqual([["Invoices.Create"], []]);
    expect(use(billing, { optional: true })).toMatchObject({ optional: true, as: undefined });
  });

  test("renames by a first word; the action keeps its own name", () => {
    const renamed = use(billing, { as: "money", rpc: ["Invoices.Create"] });
    expect(Object.keys(renamed.rpc)).toEqual(["Money.Invoices.Create"]);
    expect(renamed.rpc["Money.Invoices.Create"].name).toBe("Invoices.Create");
  });

  test("refuses what is not there", () => {
    const loose: { rpc: never[] } = { rpc: ["Invoices.Nope" as never] };
    expect(refusal(() => use(billing, loose))).toMatch(
      /no "Invoices\.Nope".*There is: Invoices\.Create, Invoices\.Void/,
    );
    expect(refusal(() => use(billing, { as: "a.b" }))).toMatch(/not a name/);
    const misspelt = { rcp: ["Invoices.Create"] } as object;
    expect(refusal(() => use(billing, misspelt))).toMatch(/"rcp" is not an option/);
  });
});

describe("defineService and defineApp", () => {
  test("write down everything that is installed", () => {
    const service = defineService("acme.orders-service", {
      implements: [orders],
      uses: [use(billing, { rpc: ["Invoices.Create"], events: ["Invoice.Paid"], as: "money" })],
      kv: { carts: kv({ value: Type.Object({}), history: 5, ttl: "1d", maxValue: "64KiB", optional: true }) },
      store: { invoices: store({ maxObject: "64MiB" }) },
      jobs: {
        reconcile: job({
          payload: Type.Object({ orderId: Type.String() }),
          retry: { attempts: 3, backoff: ["5s", "30s"] },
          keyConcurrency: { key: ["/orderId"] },
        }),
      },
      consumers: { billing: consumer({ events: [billing.events["Invoice.Paid"]], concurrency: 8 }) },
      state: {
        settings: state({
          value: Type.Object({ dark: Type.Boolean() }),
          version: 2,
          migrate: { 1: (old) => old },
        }),
      },
    });
    expect(service.artifact).toMatchObject({
      format: "trellis.participant/v1",
      kind: "service",
      id: "acme.orders-service",
      implements: [orders.artifact],
      uses: [
        {
          api: "acme.billing@v1",
          as: "money",
          optional: false,
          rpc: { "Invoices.Create": { input: null } },
          events: { "Invoice.Paid": { params: [] } },
          operations: {},
          feeds: {},
        },
      ],
      kv: { carts: { history: 5, ttlMs: 86_400_000, maxValueBytes: 65_536, version: 1, optional: true } },
      store: { invoices: { ttlMs: null, maxObjectBytes: 67_108_864, maxTotalBytes: null, optional: false } },
      jobs: {
        reconcile: {
          result: null,
          retry: { attempts: 3, backoff: { kind: "delays", delaysMs: [5_000, 30_000] } },
          keyConcurrency: {
            key: ["/orderId"],
            maxActive: 1,
            heartbeatIntervalMs: 30_000,
            heartbeatTtlMs: 120_000,
            stalePolicy: "fail-stale",
          },
          queue: null,
          deadlineMs: null,
          concurrency: 1,
          ackWaitMs: 5_000,
          maxCrashes: 5,
        },
      },
      consumers: {
        billing: {
          events: [{ api: "acme.billing@v1", event: "Invoice.Paid" }],
          concurrency: 8,
          replay: "new",
        },
      },
      state: { settings: { version: 2, ttlMs: null } },
    });
    expect(service.digest).toBe(digestOf(service.artifact));
  });

  test("an app uses and provides nothing", () => {
    const app = defineApp("acme.shop", { title: "Shop", uses: [use(orders)] });
    expect(app).toMatchObject({
      kind: "app",
      id: "acme.shop",
      title: "Shop",
      implements: [],
      kv: {},
      jobs: {},
    });
    expect(app.artifact.uses[0]?.api).toBe("acme.orders@v1");
    expect(defineApp("acme.shop", { uses: [use(orders)] }).digest).toBe(app.digest);
  });

  test("the order of uses says nothing", () => {
    const uses = [use(orders), use(billing)];
    expect(defineApp("acme.shop", { uses }).digest).toBe(
      defineApp("acme.shop", { uses: uses.reverse() }).digest,
    );
  });

  test("refuse two used APIs that collide, until one is renamed", () => {
    const other = defineApi("other.billing@v1", { rpc: { "Invoices.Create": rpc() } });
    expect(refusal(() => defineApp("acme.shop", { uses: [use(billing), use(other)] }))).toMatch(
      /"acme\.billing@v1 Invoices\.Create" and "other\.billing@v1 Invoices\.Create" would both be called invoices\.create.*use\(api, \{ as/,
    );
    defineApp("acme.shop", { uses: [use(billing), use(other, { as: "other" })] });
    defineApp("acme.shop", { uses: [use(billing, { rpc: ["Invoices.Void"] }), use(other)] });
  });

  test("refuse what is not there, and what is there twice", () => {
    const paid = consumer({ events: [billing.events["Invoice.Paid"]] });
    expect(refusal(() => defineService("acme.a", { consumers: { paid } }))).toMatch(
      /neither uses nor implements.*events: \["Invoice\.Paid"\]/,
    );
    expect(
      refusal(() =>
        defineService("acme.a", { uses: [use(billing, { rpc: ["Invoices.Create"] })], consumers: { paid } }),
      ),
    ).toMatch(/neither uses/);
    expect(refusal(() => defineService("acme.a", { implements: [orders] }))).toMatch(
      /upload: it does not say which store \(declared: none\)/,
    );
    expect(
      refusal(() => defineService("acme.a", { implements: [orders], store: { a: store(), b: store() } })),
    ).toMatch(/declared: a, b/);
    expect(refusal(() => defineService("acme.a", { implements: [billing, billing] }))).toMatch(
      /implements acme\.billing@v1 twice/,
    );
    expect(
      refusal(() => defineApp("acme.a", { uses: [use(billing, { rpc: [] }), use(billing, { as: "b" })] })),
    ).toMatch(/uses acme\.billing@v1 twice/);
    expect(
      refusal(() => defineService("acme.a", { kv: { "Not-an-alias": kv({ value: Type.String() }) } })),
    ).toMatch(/not an alias/);
    expect(refusal(() => defineService("acme.orders@v1", {}))).toMatch(/not a participant id/);
    const bad = kv({ value: Type.Unsafe<string>(Type.Undefined()) });
    expect(refusal(() => defineService("acme.a", { kv: { bad } }))).toMatch(
      /service acme\.a, kv "bad", schema: JSON has no type "undefined"/,
    );
    expect(refusal(() => consumer({ events: [] }))).toMatch(/at least one event/);
    expect(refusal(() => consumer({ events: [event({ payload: Type.String() })] }))).toMatch(
      /does not belong to an API/,
    );
  });
});

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

describe("defineError", () => {
  test("makes one class for both sides", () => {
    const error = new OutOfStock({ data: { sku: "tea", left: 1 }, cause: new Error("secret") });
    expect(error).toBeInstanceOf(OutOfStock);
    expect(error).toMatchObject({
      kind: "declared",
      type: "OutOfStock",
      message: "Out of stock",
      data: { sku: "tea", left: 1 },
    });
    expect([OutOfStock.errorName, OutOfStock.name, String(error)]).toEqual([
      "OutOfStock",
      "OutOfStock",
      "OutOfStock: Out of stock",
    ]);
    expect(error.toSerializable()).toEqual({
      ...{
        id: error.id,
        kind: "declared",
        type: "OutOfStock",
        message: "Out of stock",
        data: { sku: "tea", left: 1 },
      },
    });
    expect(OutOfStock.dataSchema?.issues({ sku: 1, left: 1 })).toMatchObject([{ path: "/sku" }]);
  });

  test("can be extended, for a name of one's own in hovers", () => {
    class Full extends defineError("Full", { data: Type.Object({ n: Type.Integer() }) }) {
      get twice(): number {
        return this.data.n * 2;
      }
    }
    expect(new Full({ data: { n: 2 } })).toMatchObject({ type: "Full", twice: 4 });
    expect(rpc({ errors: [Full] }).errors["Full"]).toBe(Full);
  });

  test("takes its message from the data, and a given one first", () => {
    const Busy = defineError("HTTPBusy2", {
      data: z.object({ n: z.number() }),
      message: ({ n }) => `${n} are busy`,
    });
    expect(new Busy({ data: { n: 2 } }).message).toBe("2 are busy");
    expect(new Busy({ data: { n: 2 }, message: "busy" }).message).toBe("busy");
    expect(new (defineError("HTTPBusy2"))().message).toBe("Http busy2");
    expect(
      new (defineError("Closed", { message: "The shop is closed" }))().toSerializable(),
    ).not.toHaveProperty("data");
  });

  test("refuses data that transforms", () => {
    const When = Type.Codec(Type.String())
      .Decode((text) => text.trim())
      .Encode((text) => text);
    expect(refusal(() => defineError("Bad", { data: When }))).toMatch(/must not transform/);
  });
});
