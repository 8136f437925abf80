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
  feed,
  job,
  kv,
  operation,
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
