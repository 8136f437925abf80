import Type from "typebox";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  DefinitionError,
  defineApi,
  defineError,
  defineService,
  digestOf,
  event,
  feed,
  operation,
  reserved,
  rpc,
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
