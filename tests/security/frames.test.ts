import { defineApi, defineApp, defineService, rpc, use } from "@trellis/contract";
import {
  controlSubject,
  encodeControlFrame,
  fromBase64Url,
  rpcSubject,
  toBase64Url,
} from "@trellis/protocol";
import { nodePort as port } from "@trellis/runtime/node";
import type { TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Attacker, type Shot } from "./attacker.ts";
import { mayPublish, maySubscribe } from "./broker-probe.ts";
import {
  type Stock,
  shop,
  startScene,
  startStock,
  startVault,
  stock,
  stockService,
  warehouse,
} from "./scene.ts";

let trellis: TestTrellis;
let provider: Stock;
let caller: Attacker;
let other: Attacker;

beforeAll(async () => {
  trellis = await startScene();
  provider = await startStock(trellis);
  await startVault(trellis);
  caller = await Attacker.join(trellis, shop);
  other = await Attacker.join(trellis, warehouse);
});
afterAll(async () => {
  await Promise.all([caller?.close(), other?.close()]);
  await trellis?.stop();
});
beforeEach(() => {
  provider.handled.length = 0;
});

/**
 * Fires frames that must come to nothing, then an honest one, which must not: the provider takes the messages of
 * one connection in their order, so when the last is answered, all have been looked at.
 */
async function expectIgnored(shots: readonly Shot[], from: Attacker = caller): Promise<void> {
  for (const shot of shots) from.fire(shot);
  const twin = from.shot(stock.id, "Stock.Count", "twin");
  expect(await from.ask(twin)).toMatchObject({ kind: "results", authentic: true, results: [{ payload: 4 }] });
  expect(provider.handled).toEqual(["count twin"]);
  provider.handled.length = 0;
}

function count(input: string, changes: Parameters<Attacker["shot"]>[3] = {}): Shot {
  return caller.shot(stock.id, "Stock.Count", input, changes);
}

/** The frame with one bit of a byte turned. */
function flipped(shot: Shot, at: number): Shot {
  const bytes = shot.bytes.slice();
  bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
  return { ...shot, bytes };
}

describe("a changed frame", () => {
  it("does not reach the handler, whichever byte was changed", async () => {
    const shot = count("tampered");
    const changed = Array.from(shot.bytes, (_, at) => flipped(shot, at));
    expect(changed.length).toBeGreaterThan(120);
    await expectIgnored(changed);
    // The frame that was changed still counts when it comes as it was.
    expect(await caller.ask(shot)).toMatchObject({ authentic: true, results: [{ payload: 8 }] });
  });

  it("does not reach it either when it was cut, lengthened, emptied or replaced", async () => {
    const shot = count("tampered");
    const { bytes } = shot;
    await expectIgnored(
      [
        new Uint8Array(0),
        bytes.subarray(0, 1),
        bytes.subarray(0, 54),
        bytes.subarray(0, -1),
        bytes.subarray(1),
        Buffer.concat([bytes, bytes.subarray(0, 1)]),
        Buffer.concat([bytes, bytes]),
        port.random(bytes.length),
        Buffer.from('"tampered"'),
      ].map((changed) => ({ ...shot, bytes: changed })),
    );
  });

  it("is answered by a bare refusal, which says next to nothing", async () => {
    const shot = count("tampered");
    expect(await caller.ask(flipped(shot, shot.bytes.length - 1))).toEqual({
      kind: "refusal",
      code: "malformed",
    });
    expect(await caller.ask(flipped(count("x"), 10))).toEqual({
      kind: "refusal",
      code: "unknown-authorization",
    });
    expect(await caller.ask(count("x", { header: { epoch: 77 } }))).toEqual({
      kind: "refusal",
      code: "stale-epoch",
    });
  });

  it("with another reply subject does not reach the handler", async () => {
    const shot = count("moved reply");
    await expectIgnored([
      { ...shot, reply: caller.reply() },
      { ...shot, reply: `${other.inbox}.r.n1` },
      { ...shot, reply: `${shot.reply}0` },
      { ...shot, reply: "" },
    ]);
  });

  it("on another action's subject does not reach that handler", async () => {
    const { deployment } = caller.binding(stock.id);
    const slow = rpcSubject({ api: stock.id, deployment, action: "Stock.Slow" });
    await expectIgnored([{ ...count("moved"), subject: slow }]);
    // A grant for the other action does not help either: the frame is bound to its subject.
    const destroy = rpcSubject({ api: stock.id, deployment, action: "Stock.Destroy" });
    await expectIgnored([{ ...other.shot(stock.id, "Stock.Count", "moved"), subject: destroy }], other);
  });

  it("for another deployment's route does not reach the handler", async () => {
    const vaultId = "acme.vault@v1";
    const shot = caller.shot(vaultId, "Vault.Peek", null);
    const { deployment } = caller.binding(stock.id);
    const subject = rpcSubject({ api: stock.id, deployment, action: "Stock.Count" });
    await expectIgnored([{ ...shot, subject }, count("wrong keys", { keys: caller.keysFor(vaultId) })]);
  });

  it("asking to be answered outside of the sender's own inbox does not reach the handler", async () => {
    // All of these carry a right MAC: the sender itself wants it so.
    await expectIgnored(
      [
        `${other.inbox}.r.n1`,
        `${caller.inbox}.j.n1`,
        "ctl.notice.route.x",
        "ctl.get.notices",
        `ctl.v1.${caller.binding(stock.id).deployment}.all`,
        "$SYS.REQ.USER.INFO",
        "anything",
      ].map((reply) => count("misled", { reply })),
    );
  });
});

describe("an old frame", () => {
  it("is handled once, however often and wherever it is sent again", async () => {
    const shot = count("once");
    expect(await caller.ask(shot)).toMatchObject({ results: [{ payload: 4 }] });
    provider.handled.length = 0;
    await expectIgnored([shot, shot, { ...shot, reply: caller.reply() }]);
    // By somebody else, who may call the same action.
    await expectIgnored([shot, { ...shot, reply: other.reply() }], other);
  });

  it("is handled by each replica once at the most, and nobody but its sender has it to send again", async () => {
    // Replicas share no memory of frames: that a call never runs twice is what an idempotency key is for. Who could
    // send a frame again are its sender, the broker, and the replica that got it, whom the broker lets send none.
    const replica = await startStock(trellis);
    const shot = count("twice");
    for (let times = 0; times < 40; times++) caller.fire(shot);
    await expect.poll(() => replica.handled.length + provider.handled.length).toBeGreaterThan(0);
    for (let times = 0; times < 40; times++) await caller.ask(count("twin"));
    for (const { handled } of [provider, replica]) {
      expect(handled).toContain("count twin");
      expect(handled.filter((call) => call === "count twice").length).toBeLessThanOrEqual(1);
    }
    await using sibling = await Attacker.join(trellis, stockService);
    expect(await mayPublish(sibling.nats, shot.subject)).toBe(false);
    expect(await maySubscribe(other.nats, shot.subject)).toBe(false);
    await replica.service.stop();
  });

  it("is refused by its counter also when newer ones came before", async () => {
    const shots = [count("a"), count("b"), count("c")] as const;
    for (const shot of [shots[2], shots[0]])
      expect(await caller.ask(shot)).toMatchObject({ authentic: true });
    expect(provider.handled).toEqual(["count c", "count a"]);
    provider.handled.length = 0;
    await expectIgnored([shots[2], shots[0]]);
    expect(await caller.ask(shots[1])).toMatchObject({ results: [{ payload: 1 }] });
  });

  it("with a counter that was used does not reach the handler under another request id", async () => {
    expect(await caller.ask(count("first", { header: { counter: 900 } }))).toMatchObject({ authentic: true });
    provider.handled.length = 0;
    await expectIgnored([count("second", { header: { counter: 900 } })]);
  });

  it("is refused by its time of issue, past and future; a small difference is allowed", async () => {
    const at = (offset: number) => ({ header: { issuedAt: Date.now() + offset } });
    await expectIgnored([-3_600_000, -61_000, 61_000, 86_400_000].map((offset) => count("old", at(offset))));
    for (const offset of [-50_000, 50_000]) {
      const shot = count("near", { ...at(offset), remainingMs: 120_000 });
      expect(await caller.ask(shot)).toMatchObject({ authentic: true, results: [{ status: 0 }] });
    }
  });

  it("is not what a call to another API of the same deployment looks like", async () => {
    const left = defineApi("acme.left@v1", { rpc: { "Left.Ask": rpc({ output: Type.String() }) } });
    const right = defineApi("acme.right@v1", { rpc: { "Right.Ask": rpc({ output: Type.String() }) } });
    await trellis.service(defineService("acme.halves", { implements: [left, right] }), ({ handle }) => {
      handle.rpc.left.ask(() => "left");
      handle.rpc.right.ask(() => "right");
    });
    const { rpc: halves } = await trellis.client(defineApp("acme.whole", { uses: [use(left), use(right)] }));
    const answers = await Promise.all([
      halves.left.ask(undefined, { timeout: 2_000 }),
      halves.right.ask(undefined, { timeout: 2_000 }),
    ]);
    expect(answers.map((answer) => answer.orThrow())).toEqual(["left", "right"]);
  });

  it("whose deadline has passed on the way is not begun", async () => {
    const shot = count("late", { header: { issuedAt: Date.now() - 30_000 }, remainingMs: 5_000 });
    expect(await caller.ask(shot)).toMatchObject({
      authentic: true,
      results: [{ status: 1, payload: { type: "TimeoutError" } }],
    });
    expect(provider.handled).toEqual([]);
  });
});

describe("another's name", () => {
  it("under one's own keys does not reach the handler", async () => {
    const { digest } = caller;
    await expectIgnored(
      [
        // The victim's digest, keys from the intruder's own exchange key: with either digest as the salt.
        other.shot(stock.id, "Stock.Count", "forged", { header: { digest } }),
        other.shot(stock.id, "Stock.Count", "forged", {
          header: { digest },
          keys: other.keysFor(stock.id, digest),
        }),
        other.shot(stock.id, "Stock.Count", "forged", {
          header: { digest },
          keys: other.keysFor(stock.id, digest),
          reply: `${caller.inbox}.r.n1`,
        }),
      ],
      other,
    );
  });

  it("that nobody was given does not reach the handler", async () => {
    const unknown = port.random(32);
    const shot = count("unknown", { header: { digest: unknown }, keys: caller.keysFor(stock.id, unknown) });
    expect(await caller.ask(shot)).toEqual({ kind: "refusal", code: "unknown-authorization" });
    expect(provider.handled).toEqual([]);
    expect(toBase64Url(unknown)).not.toBe(caller.digestText);
  });

  it("is not taken from the payload or the request id of a frame", async () => {
    const requestId = port.random(16);
    const calls = [{ requestId, remainingMs: 5_000, payload: '"who"' }];
    const [mine, theirs] = [
      await caller.ask(caller.shot(stock.id, "Stock.Count", "", { calls })),
      await other.ask(other.shot(stock.id, "Stock.Count", "", { calls })),
    ];
    expect([mine, theirs]).toMatchObject([
      { authentic: true, results: [{ requestId }] },
      { authentic: true, results: [{ requestId }] },
    ]);
  });
});

describe("hostile contents of an authentic frame", () => {
  it("fail as one call each, and the others of the frame are answered", async () => {
    const call = (payload: string) => ({ requestId: port.random(16), remainingMs: 5_000, payload });
    const hostile = [
      "",
      "{",
      '{"__proto__":{"x":1}}',
      "[".repeat(100_000),
      "1e999",
      "null",
      "[]",
      "9".repeat(10_000),
    ];
    const results: unknown[] = [];
    for (const payload of hostile) {
      const shot = caller.shot(stock.id, "Stock.Count", "", { calls: [call(payload), call('"fine"')] });
      const echo = await caller.ask(shot);
      if (echo?.kind === "results") results.push(...echo.results.map(({ status }) => status));
    }
    expect(results).toEqual(hostile.flatMap(() => [1, 0]));
    expect(provider.handled).toEqual(hostile.map(() => "count fine"));
  });

  it("cannot name more calls than a frame may hold", async () => {
    const { deployment } = caller.binding(stock.id);
    const subject = controlSubject(deployment, "all");
    const { epoch } = caller.binding(stock.id);
    // A control frame on a control subject may name many; as a request it is nothing.
    const bytes = encodeControlFrame(port, {
      kind: "cancel",
      header: { epoch, digest: caller.digest, counter: 5_000, issuedAt: Date.now() },
      requestIds: Array.from({ length: 1_024 }, () => port.random(16)),
      subject,
      reply: "",
      key: caller.keysFor(stock.id).request,
    });
    const rpc = rpcSubject({ api: stock.id, deployment, action: "Stock.Count" });
    await expectIgnored([{ subject: rpc, reply: caller.reply(), bytes }]);
    expect(fromBase64Url(caller.digestText)).toEqual(caller.digest);
  });
});
