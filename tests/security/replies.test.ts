import { headers, type NatsConnection } from "@nats-io/transport-node";
import { defineApp, use } from "@trellis/contract";
import {
  deriveRpcKeys,
  encodeRefusal,
  encodeReplyFrame,
  fromBase64Url,
  RESULT_STATUS,
  rpcSubject,
  toHex,
} from "@trellis/protocol";
import { nodePort as port } from "@trellis/runtime/node";
import type { TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Attacker } from "./attacker.ts";
import { mayPublish } from "./broker-probe.ts";
import {
  intruderApp,
  intruderService,
  type Stock,
  startScene,
  startStock,
  startVault,
  stock,
  trap,
} from "./scene.ts";
import { wiretap } from "./wiretap.ts";

const victimApp = defineApp("acme.victim", {
  uses: [use(stock, { rpc: ["Stock.Count", "Stock.Slow"] }), use(trap, { rpc: ["Trap.Enter"] })],
});

let trellis: TestTrellis;
let provider: Stock;
/** A provider that the victim calls too: it may publish to inboxes, and has seen reply subjects of the victim. */
let intruder: Attacker;
let seen: string[];
/** Publishes anywhere: a broker that lets everything through. */
let lax: NatsConnection;

beforeAll(async () => {
  trellis = await startScene();
  provider = await startStock(trellis);
  await startVault(trellis);
  intruder = await Attacker.join(trellis, intruderService);
  lax = trellis.controlPlane.plane.links.app;
  const subject = rpcSubject({ api: trap.id, deployment: intruder.deployment, action: "Trap.Enter" });
  intruder.nats.subscribe(subject, {
    queue: subject,
    callback: (_, message) => {
      if (message.reply !== undefined) seen.push(message.reply);
    },
  });
  await intruder.nats.flush();
});
afterAll(async () => {
  await intruder?.close();
  await trellis?.stop();
});
beforeEach(() => {
  seen = [];
  provider.handled.length = 0;
  provider.slow.clear();
});

async function startVictim() {
  const tap = wiretap();
  const client = await trellis.client(victimApp, { platform: tap.platform });
  /** Reply subject and request ids of the last call to the stock. */
  const lastCall = () => tap.last(`rpc.v1.acme_stock@v1.`);
  return { client, tap, lastCall };
}

/** Everything that could pass for an answer, for one reply subject. */
function forgeries(reply: string, requestId: Uint8Array): Uint8Array[] {
  const results = [{ requestId, status: RESULT_STATUS.ok, payload: '"forged"' }];
  const error = [{ requestId, status: RESULT_STATUS.error, payload: '{"kind":"call","type":"AuthError"}' }];
  const receipt = [
    { requestId, status: RESULT_STATUS.receipt, payload: '{"connection":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}' },
  ];
  const binding = intruder.binding("acme.vault@v1");
  const shared = intruder.keys.exchange.shared(fromBase64Url(binding.routeKey) ?? new Uint8Array());
  const own = deriveRpcKeys(port, { shared, digest: intruder.digest, epoch: 1 });
  const random = port.macKey(port.random(32));
  return [
    ...[results, error, receipt].flatMap((content) =>
      [own.reply, own.request, random].map((key) =>
        encodeReplyFrame(port, { epoch: 1, results: content, reply, key }),
      ),
    ),
    new Uint8Array(0),
    Buffer.from('"forged"'),
    Buffer.from("+OK"),
  ];
}

/** The request id of the only call of a frame. */
function requestIdOf(frame: Uint8Array): Uint8Array {
  return frame.slice(55, 71);
}

describe("a forged answer", () => {
  it("of a third party is ignored, though it knows the very reply subject; the true one counts", async () => {
    const { client, lastCall } = await startVictim();
    const pending = client.rpc.stock.slow("true");
    await expect.poll(() => provider.slow.size).toBe(1);
    const { reply, data } = lastCall();
    for (const forged of forgeries(reply, requestIdOf(data))) intruder.nats.publish(reply, forged);
    await intruder.nats.flush();
    // The victim answers a call of ours after it has seen all that: the broker keeps the order.
    expect((await client.rpc.stock.count("four")).orThrow()).toBe(4);
    provider.slow.get("true")?.();
    expect((await pending).orThrow()).toBe("true");
    expect(provider.handled).toEqual(["slow true", "count four"]);
  });

  it("cannot be sent by an application at all", async () => {
    await using app = await Attacker.join(trellis, intruderApp);
    const { client, lastCall } = await startVictim();
    await client.rpc.stock.count("one").orThrow();
    expect(await mayPublish(app.nats, lastCall().reply)).toBe(false);
    expect(await mayPublish(intruder.nats, lastCall().reply)).toBe(true);
  });

  it("is not possible with the true one of another call, nor by sending the true one twice", async () => {
    const { client, tap, lastCall } = await startVictim();
    const frames: { subject: string; data: Uint8Array }[] = [];
    tap.received((message) => void frames.push({ subject: message.subject, data: message.data.slice() }));
    const first = client.rpc.stock.slow("first");
    await expect.poll(() => provider.slow.size).toBe(1);
    // Under way together, in one frame.
    const [second, third] = [client.rpc.stock.slow("second"), client.rpc.stock.slow("third")];
    await expect.poll(() => provider.slow.size).toBe(3);
    const { reply } = lastCall();
    provider.slow.get("second")?.();
    expect((await second).orThrow()).toBe("second");
    const answers = frames.filter(({ subject }) => subject.includes(".r."));
    const answer = answers.at(-1);
    expect(answer?.subject).toBe(reply);
    for (const target of [
      reply,
      reply,
      tap.sent.find(({ subject }) => subject.includes("Slow"))?.reply ?? "",
    ]) {
      lax.publish(target, answer?.data);
    }
    await lax.flush();
    expect((await client.rpc.stock.count("four")).orThrow()).toBe(4);
    provider.slow.get("first")?.();
    provider.slow.get("third")?.();
    expect((await first).orThrow()).toBe("first");
    expect((await third).orThrow()).toBe("third");
    expect(provider.handled).toEqual(["slow first", "slow second", "slow third", "count four"]);
  });
});

/** What needs no key: refusals, and the broker's own way to say that nobody listens. */
function bareAnswers(nats: NatsConnection, reply: string): void {
  for (const code of ["malformed", "stale-epoch", "unknown-authorization"] as const) {
    nats.publish(reply, encodeRefusal(code));
  }
  nats.publish(reply, new Uint8Array(0), { headers: headers(503, "No Responders") });
}

describe("an answer that needs no key", () => {
  it("cannot be addressed by one provider to the calls of another: a call is not sent twice for it", async () => {
    const { client, lastCall } = await startVictim();
    void client.rpc.trap.enter(undefined, { timeout: 500 });
    await expect.poll(() => seen.length).toBe(1);
    const [, prefix = "", last = ""] = /^(.*\.r\.[0-9a-f]{16})([0-9a-z]+)$/.exec(seen[0] ?? "") ?? [];
    expect(prefix).not.toBe("");

    const pending = client.rpc.stock.slow("once");
    await new Promise(setImmediate);
    expect(lastCall().subject).toContain("Slow");
    for (let guess = 0; guess < 50; guess++) {
      bareAnswers(intruder.nats, prefix + (Number.parseInt(last, 36) + guess).toString(36));
    }
    await intruder.nats.flush();
    await expect.poll(() => provider.slow.size).toBe(1);
    expect((await client.rpc.stock.count("four")).orThrow()).toBe(4);
    provider.slow.get("once")?.();
    expect((await pending).orThrow()).toBe("once");
    expect(provider.handled.filter((call) => call === "slow once")).toHaveLength(1);
  });

  it("to an unknown token changes nothing", async () => {
    const { client, lastCall } = await startVictim();
    const pending = client.rpc.stock.slow("calm");
    await new Promise(setImmediate);
    const inbox = lastCall().reply.slice(0, lastCall().reply.lastIndexOf("."));
    for (let guess = 0; guess < 20; guess++) {
      bareAnswers(intruder.nats, `${inbox}.${toHex(port.random(8))}${guess}`);
    }
    await intruder.nats.flush();
    await expect.poll(() => provider.slow.size).toBe(1);
    provider.slow.get("calm")?.();
    expect((await pending).orThrow()).toBe("calm");
    expect(provider.handled).toEqual(["slow calm"]);
  });

  it("is ignored once the provider has told that it has the call", async () => {
    const { client, lastCall, tap } = await startVictim();
    let receipts = 0;
    tap.received(({ subject }) => void (subject.includes(".r.") && receipts++));
    const pending = client.rpc.stock.slow("held");
    await expect.poll(() => receipts).toBe(1);
    bareAnswers(lax, lastCall().reply);
    await lax.flush();
    expect((await client.rpc.stock.count("four")).orThrow()).toBe(4);
    provider.slow.get("held")?.();
    expect((await pending).orThrow()).toBe("held");
    expect(provider.handled).toEqual(["slow held", "count four"]);
  });

  it("makes a call be sent again once at the most, whoever sends it and however often", async () => {
    const { client, tap } = await startVictim();
    // The broker itself turns every frame of this call away, and lets none reach the provider.
    const frames: string[] = [];
    tap.intercept(({ subject, reply }) => {
      if (!subject.includes("Stock_Slow")) return false;
      frames.push(reply);
      lax.publish(reply, encodeRefusal("malformed"));
      return true;
    });
    const refused = await client.rpc.stock.slow("refused", { timeout: 5_000 });
    expect(refused.isErr() && refused.error).toMatchObject({ type: "AuthError" });
    expect(frames).toHaveLength(2);
  });
});
