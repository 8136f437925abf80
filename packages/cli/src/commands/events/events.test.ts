import { consumer, defineApi, defineService, event, use } from "@trellis/contract";
import { eventually, startTrellis, type TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCli, startCli } from "../../cli.test-kit.ts";

const orders = defineApi("acme.orders@v1", {
  events: {
    "Order.Placed": event({
      payload: Type.Object({ n: Type.Integer(), region: Type.String() }),
      params: ["region"],
    }),
  },
});
const shop = defineService("acme.shop", { implements: [orders] });
const billing = defineService("acme.billing", {
  uses: [use(orders)],
  consumers: {
    bills: consumer({ events: [orders.events["Order.Placed"]], retry: { attempts: 1 } }),
    others: consumer({ events: [orders.events["Order.Placed"]] }),
  },
});

let trellis: TestTrellis;
let failing = true;
const billed: number[] = [];
const others: number[] = [];
let publish: (n: number) => Promise<unknown>;

beforeAll(async () => {
  trellis = await startTrellis();
  const { client } = await trellis.service(shop, () => {});
  publish = async (n) => client.event.order.placed.publish({ n, region: "eu" }).orThrow();
  await trellis.service(billing, (service) => {
    const { placed } = service.event.order;
    placed.listen(
      ({ event: { payload } }) => {
        if (failing) throw new Error("the till is stuck");
        billed.push(payload.n);
      },
      { group: "bills" },
    );
    placed.listen(({ event: { payload } }) => void others.push(payload.n), { group: "others" });
  });
}, 60_000);
afterAll(() => trellis.stop());

const run = (...args: string[]) => runCli(["events", ...args], { env: trellis.env() });
const json = async (...args: string[]) => JSON.parse((await run(...args, "--json")).stdout) as unknown;

describe("trellis events", () => {
  it("lists, shows, replays to the one consumer, and discards dead letters", async () => {
    for (let n = 0; n < 5; n += 1) await publish(n);
    await eventually(
      async () => {
        const rows = (await json("dlq", "ls")) as { consumer: string; deadLetters: number }[];
        expect(rows.find(({ consumer: name }) => name === "bills")?.deadLetters).toBe(5);
      },
      { timeout: 60_000, interval: 500 },
    );
    const letters = (await json("dlq", "ls", "acme.billing")) as {
      sequence: number;
      error: object;
      event: string;
    }[];
    expect(letters).toHaveLength(5);
    const [first, second] = letters;
    expect(first).toMatchObject({ event: "Order.Placed", error: { message: "the till is stuck" } });
    const shown = await run("dlq", "show", "acme.billing", "bills", String(first?.sequence));
    expect(shown.stdout).toContain('payload   {"n":0,"region":"eu"}');
    expect(shown.stdout).toContain("exhausted");
    failing = false;
    const discarded = await run("dlq", "discard", "acme.billing", "bills", String(first?.sequence), "99999");
    expect(discarded).toMatchObject({ code: 5, stdout: "1 dead letters discarded\n" });
    expect(discarded.stderr).toContain("99999");
    expect(await json("dlq", "replay", "acme.billing", "bills", String(second?.sequence))).toEqual({
      done: [second?.sequence],
      missing: [],
    });
    expect((await run("dlq", "replay", "acme.billing", "bills", "--all")).stdout).toBe(
      "3 dead letters replayed\n",
    );
    await eventually(() => expect(billed.sort((a, b) => a - b)).toEqual([1, 2, 3, 4]));
    expect(others.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4]);
    expect((await run("dlq", "ls", "acme.billing")).stderr).toContain("There are no dead letters.");
  }, 120_000);

  it("helps those who name what is not there, or nothing", async () => {
    const nobody = await run("dlq", "ls", "acme.nobody");
    expect(nobody.code).toBe(5);
    expect(nobody.stderr).toContain('There is no deployment "acme.nobody".');
    const which = await run("dlq", "replay", "acme.billing", "bills");
    expect(which.code).toBe(2);
    expect(which.stderr).toContain("--all");
  }, 120_000);

  it("tails: what was, what comes, by name, and ends after so many", async () => {
    const past = await run("tail", "Order.Placed", "--since", "1h", "--limit", "3", "--json");
    const lines = past.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { payload: { n: number } });
    expect(lines.map(({ payload }) => payload.n)).toEqual([0, 1, 2]);
    const follow = startCli(["events", "tail"], { env: trellis.env() });
    await eventually(
      async () => {
        await publish(77);
        expect(follow.stdout).toContain('Order.Placed eu {"n":77');
      },
      { timeout: 40_000, interval: 500 },
    );
    expect(await follow.end("SIGINT")).toBe(0);
    const none = await run("tail", "No.Such", "--since", "1x");
    expect(none.code).toBe(2);
  }, 120_000);
});
