import { consumer, defineApi, defineService, event, feed, job, kv, rpc, use } from "@trellis/contract";
import { eventually, startTrellis, type TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, expect, it } from "vitest";

// One value, one verdict: wherever a value of a schema is handed over, it is taken or refused alike, before anything is
// sent, and arrives as it was. Values stand in an object, so that a refusal can name its place.

const Value = Type.Object({
  text: Type.Optional(Type.String({ minLength: 4, maxLength: 4 })),
  money: Type.Optional(Type.Number({ multipleOf: 0.01 })),
  whole: Type.Optional(Type.Integer()),
  slow: Type.Optional(Type.String({ pattern: "^(a+)+$", maxLength: 20 })),
  items: Type.Optional(Type.Array(Type.Object({ id: Type.String() }))),
  either: Type.Optional(
    Type.Union([Type.Object({ a: Type.String() }), Type.Object({ a: Type.String(), b: Type.String() })]),
  ),
  tagged: Type.Optional(
    Type.Union([Type.Object({ kind: Type.Literal("one") }), Type.Object({ kind: Type.Literal("two") })]),
  ),
  closed: Type.Optional(Type.Object({ a: Type.String() }, { additionalProperties: false })),
  any: Type.Optional(Type.Unknown()),
});
const safe = Type.Object({ ...Value.properties, slow: Type.Optional(Type.String({ maxLength: 20 })) });

const api = defineApi("acme.values@v1", {
  rpc: { "Values.Echo": rpc({ input: safe, output: safe }) },
  events: { "Value.Seen": event({ payload: safe }) },
  feeds: { "Values.Live": feed({ input: safe, event: safe }) },
});
const provider = defineService("acme.values-service", { implements: [api] });
const user = defineService("acme.values-user", {
  uses: [use(api)],
  kv: { kept: kv({ value: safe }) },
  jobs: { work: job({ payload: safe, result: safe }) },
  consumers: { seen: consumer({ events: [api.events["Value.Seen"]] }) },
});

type Verdict = { readonly value: unknown } | { readonly refused: string | undefined };
type Surface = (value: unknown) => Promise<Verdict>;
let trellis: TestTrellis;
let surfaces: Record<string, Surface>;

interface Refusal {
  readonly type?: unknown;
  readonly errors?: readonly { readonly path: string }[];
}

/** What became of a value: what arrived, or where it was refused. */
async function verdict(
  done: Promise<{ isErr(): boolean; error?: unknown; value?: unknown }>,
): Promise<Verdict> {
  const result = await done;
  if (!result.isErr()) return { value: result.value };
  const { type, errors } = result.error as Refusal;
  expect(type).toBe("ValidationError");
  return { refused: errors?.[0]?.path };
}

beforeAll(async () => {
  trellis = await startTrellis();
  const providing = await trellis.service(provider, ({ handle }) => {
    handle.rpc.values.echo(({ input }) => input);
    handle.feed.values.live(async ({ input, emit }) => {
      await emit(input);
    });
  });
  const seen = new Map<string, unknown>();
  const using = await trellis.service(user, (service) => {
    service.event.value.seen.listen(({ event: { id, payload } }) => void seen.set(id, payload));
    service.jobs.work.handle(({ job: { payload } }) => payload);
  });
  const { rpc: calls, feed: feeds } = using.client;
  // The surfaces are typed; what is put in here is what a careless caller, or another language, would.
  const of = (value: unknown) => value as Record<string, never>;
  surfaces = {
    rpc: (value) => verdict(calls.values.echo(of(value)).toPromise()),
    event: async (value) => {
      const published = await verdict(providing.client.event.value.seen.publish(of(value)).toPromise());
      if ("refused" in published) return published;
      const { id } = published.value as { id: string };
      await eventually(() => expect([...seen.keys()]).toContain(id));
      return { value: seen.get(id) };
    },
    kv: async (value) => {
      const put = await verdict(using.kv.kept.put("key", of(value)).toPromise());
      return "refused" in put ? put : { value: (await using.kv.kept.get("key").orThrow())?.value };
    },
    job: async (value) => {
      const made = await using.jobs.work.create(of(value));
      if (made.isErr()) return verdict(Promise.resolve(made));
      return { value: await made.value.waitForResult({ timeout: 10_000 }).orThrow() };
    },
    feed: async (value) => {
      try {
        for await (const item of feeds.values.live(of(value))) return { value: item };
      } catch (error) {
        expect((error as Refusal).type).toBe("ValidationError");
        return { refused: (error as Refusal).errors?.[0]?.path };
      }
      return { value: undefined };
    },
  };
});
afterAll(() => trellis.stop());

async function everywhere(value: unknown, expected: Verdict): Promise<void> {
  for (const [name, hand] of Object.entries(surfaces)) expect(await hand(value), name).toEqual(expected);
}

it("texts are as long as they have code points", async () => {
  for (const text of ["abcd", "😀😀😀😀", "e\u0301e\u0301", "🇫🇷🇩🇪"])
    await everywhere({ text }, { value: { text } });
  for (const text of ["abcde", "😀😀", "ééé", "\ud800abc"]) await everywhere({ text }, { refused: "/text" });
});

it("money is a multiple of a hundredth, and integers are what JSON Schema calls so", async () => {
  for (const money of [143.47, 143.48, 0.07, 4.35, 1e20]) await everywhere({ money }, { value: { money } });
  await everywhere({ money: 0.075 }, { refused: "/money" });
  for (const whole of [1, 1e3, 2 ** 53]) await everywhere({ whole }, { value: { whole } });
  await everywhere({ whole: 1.5 }, { refused: "/whole" });
});

it("open objects keep what a newer writer added, closed ones refuse it, unions lose nothing", async () => {
  const extra = { items: [{ id: "a", note: "new" }], total: { of: 3 } };
  await everywhere(extra, { value: extra });
  await everywhere({ either: { a: "1", b: "2" } }, { value: { either: { a: "1", b: "2" } } });
  await everywhere({ closed: { a: "1", b: "2" } }, { refused: "/closed/b" });
  for (const hand of Object.values(surfaces))
    expect(await hand({ tagged: { kind: "three" } })).toMatchObject({
      refused: expect.stringMatching(/^\/tagged/),
    });
});

it("what JSON cannot carry is refused with its place", async () => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  for (const any of [
    Number.NaN,
    Number.POSITIVE_INFINITY,
    10n,
    new Date(0),
    new Map(),
    new Uint8Array(2),
    cycle,
  ])
    for (const [name, hand] of Object.entries(surfaces))
      expect(await hand({ any }), `${name} ${typeof any}`).toMatchObject({
        refused: expect.stringMatching(/^\/any/),
      });
  await everywhere({ any: { zero: 0, left: undefined } }, { value: { any: { zero: 0 } } });
});

it("names of prototypes pollute nothing", async () => {
  const evil: unknown = JSON.parse('{"any":{"__proto__":{"admin":true}}}');
  for (const hand of Object.values(surfaces)) expect(await hand(evil)).toHaveProperty("refused");
  const inert = { any: { constructor: { prototype: { admin: true } } } };
  await everywhere(inert, { value: inert });
  expect("admin" in {}).toBe(false);
});

it("a pattern that could take for ever is refused when the contract is written", () => {
  expect(() => defineApi("acme.slow@v1", { events: { Seen: event({ payload: Value }) } })).toThrow(
    /pattern/i,
  );
  expect(() =>
    defineApi("acme.slow@v1", { rpc: { Echo: rpc({ input: Value, output: Type.Null() }) } }),
  ).toThrow(/pattern/i);
});
