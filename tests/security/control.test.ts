import {
  type ControlKind,
  controlSubject,
  encodeControlFrame,
  type FrameHeader,
  type MacKey,
  rpcSubject,
} from "@trellis/protocol";
import { nodePort as port } from "@trellis/runtime/node";
import type { TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Attacker, type Echo, type Shot } from "./attacker.ts";
import { type Stock, shop, startScene, startStock, startVault, stock, warehouse } from "./scene.ts";

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
  provider.slow.clear();
  provider.aborted.clear();
});

interface ControlChanges {
  readonly header?: Partial<FrameHeader>;
  readonly key?: MacKey;
  readonly subject?: string;
  readonly reply?: string;
}

/** A control frame about calls, to all replicas, honest but for the changes. */
function control(
  from: Attacker,
  kind: ControlKind,
  ids: readonly Uint8Array[],
  changes: ControlChanges = {},
): Shot {
  const { deployment, epoch } = from.binding(stock.id);
  const subject = changes.subject ?? controlSubject(deployment, "all");
  const reply = changes.reply ?? (kind === "ping" ? from.reply() : "");
  const counter = from.nextCounter();
  const header = { epoch, digest: from.digest, counter, issuedAt: Date.now(), ...changes.header };
  const key = changes.key ?? from.keysFor(stock.id).request;
  return {
    subject,
    reply,
    bytes: encodeControlFrame(port, { kind, header, requestIds: ids, subject, reply, key }),
  };
}

/** Opens a slow call, and tells its request id. */
async function open(from: Attacker, input: string): Promise<Uint8Array> {
  const requestId = port.random(16);
  const calls = [{ requestId, remainingMs: 15_000, payload: JSON.stringify(input) }];
  from.fire(from.shot(stock.id, "Stock.Slow", input, { calls }));
  await expect.poll(() => provider.slow.has(input), { interval: 2 }).toBe(true);
  return requestId;
}

/** Waits until the provider has looked at everything that was sent to it so far. */
async function settled(...from: Attacker[]): Promise<void> {
  for (const each of from) {
    expect(await each.ask(each.shot(stock.id, "Stock.Count", "twin"))).toMatchObject({ authentic: true });
  }
}

describe("a cancel", () => {
  it("ends the sender's own call, once", async () => {
    const id = await open(caller, "mine");
    caller.fire(control(caller, "cancel", [id]));
    await expect
      .poll(() => provider.aborted.get("mine"), { interval: 2 })
      .toMatchObject({ type: "CancelledError" });
  });

  it("of another caller ends nothing, though it knows the request id", async () => {
    const id = await open(caller, "theirs");
    for (const shot of [
      control(other, "cancel", [id]),
      control(other, "cancel", [id], { header: { digest: caller.digest } }),
      control(other, "cancel", [id], {
        header: { digest: caller.digest },
        key: other.keysFor(stock.id, caller.digest).request,
      }),
    ]) {
      other.fire(shot);
    }
    await settled(other, caller);
    expect(provider.aborted.size).toBe(0);
    // By the provider's own connection, to which cancels also go.
    const { deployment, connectionId } = provider.service.auth;
    const subject = controlSubject(deployment, connectionId);
    other.fire(control(other, "cancel", [id], { subject }));
    await settled(other);
    expect(provider.aborted.size).toBe(0);
    caller.fire(control(caller, "cancel", [id], { subject }));
    await expect.poll(() => provider.aborted.has("theirs"), { interval: 2 }).toBe(true);
  });

  it("that was changed, moved, is old or was sent before ends nothing", async () => {
    const first = await open(caller, "first");
    const used = control(caller, "cancel", [first]);
    caller.fire(used);
    await expect.poll(() => provider.aborted.has("first"), { interval: 2 }).toBe(true);

    const id = await open(caller, "kept");
    const { deployment, epoch } = caller.binding(stock.id);
    const cancel = control(caller, "cancel", [id]);
    for (let at = 0; at < cancel.bytes.length; at++) {
      const bytes = cancel.bytes.slice();
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
      caller.fire({ ...cancel, bytes });
    }
    const elsewhere = controlSubject(deployment, provider.service.auth.connectionId);
    caller.fire({ ...cancel, subject: elsewhere });
    caller.fire({ ...cancel, reply: caller.reply() });
    caller.fire(control(caller, "cancel", [id], { header: { issuedAt: Date.now() - 61_000 } }));
    caller.fire(control(caller, "cancel", [id], { header: { epoch: epoch + 1 } }));
    caller.fire(control(caller, "cancel", [id], { key: caller.keysFor(stock.id).reply }));
    const { subject } = caller.shot(stock.id, "Stock.Count", "x");
    caller.fire({ ...cancel, subject });
    // The counter of a frame that was taken, for another call.
    const taken = control(caller, "cancel", [port.random(16)]);
    caller.fire(taken);
    const counter = caller.nextCounter() - 1;
    caller.fire(control(caller, "cancel", [id], { header: { counter } }));
    caller.fire(used);
    await settled(caller);
    expect([...provider.aborted.keys()]).toEqual(["first"]);
    provider.slow.get("kept")?.();
  });

  it("in the form of a request, or a request in the form of a cancel, is nothing", async () => {
    const id = await open(caller, "apart");
    const { deployment } = caller.binding(stock.id);
    const cancel = control(caller, "cancel", [id], {
      subject: rpcSubject({ api: stock.id, deployment, action: "Stock.Count" }),
    });
    caller.fire({ ...cancel, reply: caller.reply() });
    const all = controlSubject(deployment, "all");
    caller.fire(caller.shot(stock.id, "Stock.Count", "as control", { subject: all }));
    await settled(caller);
    expect(provider.handled).toEqual(["slow apart", "count twin"]);
    expect(provider.aborted.size).toBe(0);
    provider.slow.get("apart")?.();
  });
});

describe("a ping", () => {
  /** What comes back for a ping before something that is sure to be answered after it. */
  async function answers(from: Attacker, shot: Shot): Promise<Echo[]> {
    const echoes: Echo[] = [];
    from.hear(shot.reply, (echo) => echoes.push(echo));
    from.fire(shot);
    await settled(from);
    return echoes;
  }

  it("tells the caller which of its calls are held, and nobody anything about another's", async () => {
    const id = await open(caller, "held");
    const mine = await answers(caller, control(caller, "ping", [id, port.random(16)]));
    expect(mine).toMatchObject([{ authentic: true, results: [{ requestId: id, status: 2 }] }]);
    expect(await answers(other, control(other, "ping", [id]))).toEqual([]);
    provider.slow.get("held")?.();
  });

  it("is answered to the sender's inbox, or not at all", async () => {
    const id = await open(caller, "quiet");
    const heard: string[] = [];
    const lax = trellis.controlPlane.plane.links.app;
    const foreign = [`${other.inbox}.r.n1`, "ctl.notice.route.x", "anything.else", `${caller.inbox}.j.n1`];
    const spies = foreign.map((subject) =>
      lax.subscribe(subject, { callback: () => void heard.push(subject) }),
    );
    await lax.flush();
    for (const reply of foreign) caller.fire(control(caller, "ping", [id], { reply }));
    await settled(caller);
    await lax.flush();
    expect(heard).toEqual([]);
    for (const spy of spies) spy.unsubscribe();
    provider.slow.get("quiet")?.();
  });
});
