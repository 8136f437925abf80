import Type from "typebox";
import { expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  type AnyDeclaredErrorClass,
  consumer,
  type DeclaredError,
  defineApi,
  defineApp,
  defineError,
  defineService,
  event,
  type Facade,
  type FacadeKind,
  feed,
  type InputOf,
  job,
  kv,
  type OutputOf,
  type OwnedRpc,
  operation,
  type RpcAction,
  rpc,
  store,
  type UsedEvents,
  type UsedRpc,
  use,
} from "../index.ts";

interface RpcCaller<Input, Output, Failure> {
  (input: Input): Promise<Output | Failure>;
}
interface Callers extends FacadeKind {
  readonly entry: this["action"] extends RpcAction<infer I, infer O, infer E>
    ? RpcCaller<InputOf<I>, OutputOf<O>, InstanceType<E>>
    : never;
}

const OutOfStock = defineError("OutOfStock", {
  data: Type.Object({ sku: Type.String(), left: Type.Integer() }),
});
const Closed = defineError("Closed");

const orders = defineApi("acme.orders@v1", {
  title: "Orders",
  rpc: {
    "Orders.Create": rpc({
      input: Type.Object({ sku: Type.String(), qty: Type.Integer() }),
      output: Type.Object({ id: Type.String() }),
      errors: [OutOfStock, Closed],
      idempotent: true,
    }),
    "Orders.Items.List": rpc({
      input: z.object({ id: z.string() }),
      output: z.array(z.object({ sku: z.string() })),
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
    "Orders.Export": operation({
      input: Type.Object({ from: Type.String() }),
      progress: Type.Number(),
      cancel: true,
    }),
  },
  feeds: { "Orders.Live": feed({ event: Type.Object({ id: Type.String() }) }) },
});

const billing = defineApi("acme.billing@v1", {
  rpc: {
    "Invoices.Create": rpc({
      input: z.object({ order: z.string() }),
      output: z.object({ total: z.number() }),
    }),
    "Invoices.Void": rpc(),
  },
  events: { "Invoice.Paid": event({ payload: z.object({ id: z.string() }) }) },
});

const service = defineService("acme.orders-service", {
  implements: [orders],
  uses: [use(billing, { rpc: ["Invoices.Create"], events: ["Invoice.Paid"] })],
  kv: { carts: kv({ value: Type.Object({ n: Type.Integer() }), history: 5, ttl: "1d" }) },
  store: { invoices: store({ maxObject: "64MiB" }) },
  jobs: {
    reconcile: job({
      payload: Type.Object({ orderId: Type.String() }),
      result: Type.Boolean(),
      keyConcurrency: { key: ["/orderId"] },
      retry: { attempts: 3, backoff: ["5s", "30s"] },
    }),
  },
  consumers: { billing: consumer({ events: [billing.events["Invoice.Paid"]], concurrency: 8 }) },
});
const app = defineApp("acme.shop", { uses: [use(orders), use(billing, { as: "money" })] });

test("facades", () => {
  type S = Facade<UsedRpc<typeof service>, Callers>;
  expectTypeOf<S>().toEqualTypeOf<{
    readonly invoices: { readonly create: RpcCaller<{ order: string }, { total: number }, never> };
  }>();
  type A = Facade<UsedRpc<typeof app>, Callers>;
  expectTypeOf<keyof A>().toEqualTypeOf<"orders" | "ping" | "money">();
  expectTypeOf<keyof A["money"]>().toEqualTypeOf<"invoicesCreate" | "invoicesVoid">();
  expectTypeOf<A["ping"]["ping"]>().toEqualTypeOf<RpcCaller<void, void, never>>();
  expectTypeOf<A["orders"]["create"]>().parameter(0).toEqualTypeOf<{ sku: string; qty: number }>();
  expectTypeOf<keyof Facade<OwnedRpc<typeof service>, Callers>>().toEqualTypeOf<"orders" | "ping">();
  expectTypeOf<keyof UsedEvents<typeof service>>().toEqualTypeOf<"Invoice.Paid">();
});

test("errors", () => {
  const error = new OutOfStock({ data: { sku: "tea", left: 1 } });
  expectTypeOf(error).toEqualTypeOf<DeclaredError<"OutOfStock", { sku: string; left: number }>>();
  expectTypeOf(error.type).toEqualTypeOf<"OutOfStock">();
  new Closed();
  new Closed({ message: "shut" });
  // @ts-expect-error - data is required where the error declares it
  new OutOfStock({});
  // @ts-expect-error - data must fit
  new OutOfStock({ data: { sku: 1, left: 1 } });
  const anyClass: AnyDeclaredErrorClass = OutOfStock;
  expectTypeOf(anyClass.errorName).toEqualTypeOf<string>();
});

test("what JSON cannot carry is a type error", () => {
  // @ts-expect-error - a Date cannot cross the wire
  rpc({ input: z.date() });
  // @ts-expect-error - nor inside an object
  rpc({ output: z.object({ at: z.date() }) });
  // @ts-expect-error - nor a bigint
  rpc({ input: Type.Object({ n: Type.BigInt() }) });
  // @ts-expect-error - nor a Map in an array
  rpc({ input: z.array(z.map(z.string(), z.string())) });
  // @ts-expect-error - nor undefined in an array
  rpc({ input: z.array(z.string().optional()) });
  rpc({ input: z.object({ at: z.string().transform((s) => new Date(s)) }) });
  rpc({ input: z.unknown(), output: Type.Any() });
  // @ts-expect-error - a plain object is no schema
  rpc({ input: { type: "string" } });
});

test("selections", () => {
  // @ts-expect-error - there is no such action
  use(billing, { rpc: ["Invoices.Nope"] });
  // @ts-expect-error - there is no such option
  use(billing, { rcp: ["Invoices.Create"] });
  event({
    payload: Type.Object({ id: Type.String(), n: Type.Optional(Type.String()) }),
    // @ts-expect-error - a param must be a required scalar
    params: ["n"],
  });
});
