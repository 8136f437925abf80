import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/transport-node";
import { defineApp, use } from "@trellis/contract";
import {
  AUTHORIZATION_STREAM,
  authorizationGetSubject,
  NOTICE_STREAM,
  NOTICES_GET_SUBJECT,
  noticeGetSubject,
  noticeSubject,
  revocationNoticeId,
  storedAuthorizationSubject,
  storedGrantsSubject,
  storedNoticeSubject,
} from "@trellis/protocol";
import { nodePort } from "@trellis/runtime/node";
import { eventually, type TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { Attacker } from "./attacker.ts";
import { mayPublish } from "./broker-probe.ts";
import { logTrap } from "./logs.ts";
import {
  intruderService,
  type Stock,
  shop,
  startScene,
  startStock,
  startVault,
  stock,
  warehouse,
} from "./scene.ts";
import { wiretap } from "./wiretap.ts";

/** An intruder that may call the stock, and so knows its deployment and may ask for its route. */
const callerApp = defineApp("evil.caller", { uses: [use(stock, { rpc: ["Stock.Count"] })] });

let trellis: TestTrellis;
let provider: Stock;
let app: Attacker;
let service: Attacker;
/** Into the accounts, past every permission of an application. */
let ctl: NatsConnection;
let lax: NatsConnection;

beforeAll(async () => {
  trellis = await startScene();
  provider = await startStock(trellis);
  await startVault(trellis);
  app = await Attacker.join(trellis, callerApp);
  service = await Attacker.join(trellis, intruderService);
  ({ ctl, app: lax } = trellis.controlPlane.plane.links);
});
afterAll(async () => {
  await Promise.all([app?.close(), service?.close()]);
  await trellis?.stop();
});
beforeEach(() => {
  provider.handled.length = 0;
  provider.slow.clear();
  provider.aborted.clear();
});

const marker = "planted by the intruder";

/** What an application is granted that makes the server answer, with a body and headers of its choice. */
function questions(): { from: Attacker; subject: string }[] {
  const { deployment } = app.binding(stock.id);
  const shared = [NOTICES_GET_SUBJECT];
  return [
    ...[...shared, noticeGetSubject("route", deployment)].map((subject) => ({ from: app, subject })),
    ...[...shared, authorizationGetSubject(app.digestText), "ctl.get.grants.x"].map((subject) => ({
      from: service,
      subject,
    })),
    { from: app, subject: app.shot(stock.id, "Stock.Count", "x").subject },
    { from: app, subject: `ctl.v1.${deployment}.all` },
  ];
}

/** Asks everything, so that the server's answers go to `reply`. */
async function misdirect(reply: string): Promise<void> {
  const bodies = [
    marker,
    "",
    JSON.stringify({ seq: 1, batch: 5, next_by_subj: "notice.>" }),
    JSON.stringify({ seq: 1, deliver_subject: reply, config: { deliver_subject: reply } }),
    JSON.stringify({ last_by_subj: "notice.>", deliver_subject: reply, note: marker }),
  ];
  const planted = headers();
  planted.set("Nats-Rollup", "all");
  planted.set("KV-Operation", "DEL");
  planted.set("Nats-Msg-Id", marker);
  for (const { from, subject } of questions()) {
    for (const body of bodies) from.nats.publish(subject, body, { reply, headers: planted });
  }
  await Promise.all([app.nats.flush(), service.nats.flush()]);
  // The server's own answers come from elsewhere: ask once more, in the ordinary way, and wait for that.
  for (const from of [app, service]) {
    await from.nats.request(
      NOTICES_GET_SUBJECT,
      JSON.stringify({ seq: 1, batch: 1, next_by_subj: "notice.>" }),
    );
  }
}

interface Content {
  readonly messages: number;
  readonly last: number;
  readonly bodies: readonly string[];
}

async function contentOf(nats: NatsConnection, stream: string): Promise<Content> {
  const manager = await jetstreamManager(nats, { checkAPI: false });
  const { state } = await manager.streams.info(stream);
  const bodies: string[] = [];
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await manager.streams.getMessage(stream, { seq }).catch(() => undefined);
    if (message !== undefined && message !== null) bodies.push(`${message.subject} ${message.string()}`);
  }
  return { messages: state.messages, last: state.last_seq, bodies };
}

describe("the platform's streams", () => {
  it("hold what the platform wrote, and nothing that an application can have the server deliver", async () => {
    const before = [await contentOf(ctl, AUTHORIZATION_STREAM), await contentOf(ctl, NOTICE_STREAM)];
    const { connection } = service.answer;
    for (const reply of [
      storedAuthorizationSubject("A".repeat(43)),
      storedAuthorizationSubject(app.digestText),
      storedGrantsSubject("A".repeat(43)),
      storedNoticeSubject("revocation", revocationNoticeId({ kind: "connection", id: connection })),
      storedNoticeSubject("route", app.binding(stock.id).deployment),
      `$JS.API.STREAM.PURGE.${NOTICE_STREAM}`,
      `$JS.API.STREAM.DELETE.${NOTICE_STREAM}`,
      `$JS.API.STREAM.MSG.DELETE.${NOTICE_STREAM}`,
    ]) {
      await misdirect(reply);
    }
    const after = [await contentOf(ctl, AUTHORIZATION_STREAM), await contentOf(ctl, NOTICE_STREAM)];
    expect(after).toEqual(before);
    expect(JSON.stringify(after)).not.toContain(marker);
  });

  it("give an application no revocation of somebody back, and none away", async () => {
    const victim = await Attacker.join(trellis, warehouse);
    expect(await victim.ask(victim.shot(stock.id, "Stock.Count", "in"))).toMatchObject({ authentic: true });
    const { core } = trellis.controlPlane;
    const { connection } = victim.answer;
    await core["Core.Connections.Kick"]({ id: connection, revoke: true });
    const subject = storedNoticeSubject(
      "revocation",
      revocationNoticeId({ kind: "connection", id: connection }),
    );
    const stored = async () =>
      (await contentOf(ctl, NOTICE_STREAM)).bodies.find((body) => body.startsWith(subject));
    const before = await stored();
    expect(before).toContain("revocation");
    await misdirect(subject);
    await misdirect(noticeSubject("revocation", revocationNoticeId({ kind: "connection", id: connection })));
    expect(await stored()).toBe(before);
    // The victim is gone from the broker; its frames are refused when somebody else carries them.
    const shot = victim.shot(stock.id, "Stock.Count", "revoked", { reply: `${victim.inbox}.r.x` });
    lax.publish(shot.subject, shot.bytes, { reply: shot.reply });
    expect(await app.ask(app.shot(stock.id, "Stock.Count", "twin"))).toMatchObject({
      results: [{ payload: 4 }],
    });
    expect(provider.handled).toEqual(["count in", "count twin"]);
  });
});

describe("another's streams in the account of the applications", () => {
  const prefix = "jobs.v1.victim.work";
  const secret = "0123456789abcdef0123456789abcdef";

  it("take nothing of the intruder's making, even where it knows the subject", async () => {
    const manager = await jetstreamManager(lax, { checkAPI: false });
    const common = { allow_rollup_hdrs: true, allow_direct: true } as const;
    await manager.streams.add({ name: "JOBS_victim", subjects: [`${prefix}.${secret}.>`], ...common });
    await manager.streams.add({ name: "KV_victim", subjects: ["$KV.victim.>"], ...common });
    const stream = jetstream(lax, { checkAPI: false });
    await stream.publish(`${prefix}.${secret}.job1.created`, "the victim's job");
    await stream.publish("$KV.victim.key", "the victim's value");

    for (const subject of [
      `${prefix}.guess.job1.completed`,
      `${prefix}.${secret}.job1.completed`,
      "$KV.victim.key",
    ]) {
      expect(await mayPublish(service.nats, subject, { body: marker }), subject).toBe(false);
      expect(await mayPublish(app.nats, subject, { body: marker }), subject).toBe(false);
    }
    // An intruder that does not know the secret reaches nothing at all.
    await misdirect(`${prefix}.guess.job1.completed`);
    expect((await contentOf(lax, "JOBS_victim")).bodies).toEqual([
      `${prefix}.${secret}.job1.created the victim's job`,
    ]);
    // One that does makes the server store answers of the platform's: nothing of its own, no rollup, no delete.
    await misdirect(`${prefix}.${secret}.job1.completed`);
    await misdirect("$KV.victim.key");
    for (const name of ["JOBS_victim", "KV_victim"]) {
      const { bodies } = await contentOf(lax, name);
      expect(bodies[0]).toContain("the victim's");
      expect(bodies.filter((body) => body.includes(marker))).toEqual([]);
      for (let seq = 1; seq <= bodies.length; seq++) {
        const message = await manager.streams.getMessage(name, { seq });
        expect(message?.header.get("Nats-Rollup")).toBeFalsy();
        expect(message?.header.get("KV-Operation")).toBeFalsy();
      }
    }
  });
});

describe("a notice", () => {
  it("that an application publishes is refused by the broker", async () => {
    for (const self of [app, service]) {
      for (const kind of ["revocation", "route", "connection-end"] as const) {
        expect(await mayPublish(self.nats, noticeSubject(kind, "x"))).toBe(false);
      }
    }
  });

  it("without an issuer's signature changes nothing, even when the broker lets it through", async () => {
    const tap = wiretap();
    const client = await trellis.client(shop, { platform: tap.platform });
    const { deployment } = app.binding(stock.id);
    const connection = provider.service.auth.connectionId;
    const pending = client.rpc.stock.slow("calm");
    await expect.poll(() => provider.slow.size).toBe(1);
    const issuer = JSON.parse(app.answer.authorization.payload).issuer as string;
    const forged = [
      [
        "route",
        deployment,
        { deployment, epoch: 9, routeKey: "A".repeat(43), previous: null, issuedAt: Date.now() },
      ],
      [
        "connection-end",
        connection,
        { connection, deployment, instance: "x", at: Date.now(), reason: "gone" },
      ],
      [
        "revocation",
        `connection-${connection}`,
        { subject: { kind: "connection", id: connection }, at: Date.now() + 1e6, reason: "x" },
      ],
    ] as const;
    for (const [kind, id, body] of forged) {
      const payload = JSON.stringify({ version: 1, issuer, ...body });
      for (const text of [
        JSON.stringify({ payload, signature: "A".repeat(86) }),
        JSON.stringify({ payload, signature: app.answer.authorization.signature }),
        JSON.stringify(app.answer.authorization),
        payload,
        "",
        "{",
        "[".repeat(10_000),
      ]) {
        lax.publish(noticeSubject(kind, id), text);
      }
    }
    await lax.flush();
    expect((await client.rpc.stock.count("four")).orThrow()).toBe(4);
    expect(provider.aborted.size).toBe(0);
    provider.slow.get("calm")?.();
    expect((await pending).orThrow()).toBe("calm");
    expect(provider.service.connection.status.phase).toBe("connected");
  });

  it("that is old ends nothing when an application has the server deliver it again", async () => {
    const tap = wiretap();
    const client = await trellis.client(shop, { platform: tap.platform });
    const connection = /^_INBOX\.([^.]+)/.exec(tap.last("ctl.get.notices").reply)?.[1] ?? "";
    // It was off the broker for a while, was given up, and came back: that end was told, and is over.
    const { streams, statements } = trellis.controlPlane.plane;
    const { deployment, instance } = provider.service.auth;
    const end = { connection, deployment, instance, at: Date.now(), reason: "disconnected" };
    await streams.publisher.notice("connection-end", connection, statements.connectionEnd(end));
    const pending = client.rpc.stock.slow("after");
    await expect.poll(() => provider.slow.size).toBe(1);
    await misdirect(noticeSubject("connection-end", connection));
    expect((await client.rpc.stock.count("four")).orThrow()).toBe(4);
    expect([...provider.aborted.keys()]).toEqual([]);
    provider.slow.get("after")?.();
    expect((await pending).orThrow()).toBe("after");
  });

  it("that is old makes nobody ask the control plane again", async () => {
    const { deployment } = app.binding(stock.id);
    const requests = vi.spyOn(trellis.controlPlane.plane.statements, "authorization");
    for (let round = 0; round < 3; round++) {
      await misdirect(noticeSubject("route", deployment));
      expect(await app.ask(app.shot(stock.id, "Stock.Count", "twin"))).toMatchObject({ authentic: true });
    }
    expect(requests).not.toHaveBeenCalled();
    requests.mockRestore();
  });

  it("that is old costs nobody a second look at its signature, nor a line of log each", async () => {
    const log = logTrap();
    let verified = 0;
    const ed25519 = {
      ...nodePort.ed25519,
      verify: (...given: Parameters<typeof nodePort.ed25519.verify>) => {
        verified += 1;
        return nodePort.ed25519.verify(...given);
      },
    };
    const client = await trellis.client(shop, {
      platform: { port: { ...nodePort, ed25519 } },
      runtime: { log },
    });
    await client.rpc.stock.count("four").orThrow();
    const [before, lines] = [verified, log.lines.length];
    const { deployment } = app.binding(stock.id);
    // One question of an application's becomes all stored notices, at everybody who listens.
    for (const kind of ["route", "revocation", "connection-end"] as const) {
      await misdirect(noticeSubject(kind, deployment));
    }
    expect((await client.rpc.stock.count("four")).orThrow()).toBe(4);
    // What the store holds beside notices is looked at, as it is no notice; it is told once in a while.
    expect(verified - before).toBeLessThanOrEqual(3);
    const told = log.lines.slice(lines).filter((line) => line.startsWith("warn") || line.startsWith("error"));
    expect(told.length).toBeLessThanOrEqual(1);
  });
});

describe("an answer about an authorization", () => {
  it("cannot be sent into a victim's inbox", async () => {
    for (const self of [app, service]) {
      expect(await mayPublish(self.nats, `${service.inbox}.j.0123456789abcdef0`)).toBe(
        self === service ? false : false,
      );
      expect(await mayPublish(self.nats, `${app.inbox}.j.0123456789abcdef0`)).toBe(false);
    }
  });

  it("that is another's is not taken, even by one who knows the very token", async () => {
    const tap = wiretap();
    const replica = await startStock(trellis, { platform: tap.platform });
    const fresh = await Attacker.join(trellis, warehouse);
    // Every question of the replica is answered first by the authorization of somebody else, then by noise.
    tap.intercept(({ subject, reply }) => {
      if (!subject.startsWith("ctl.get.authorization.")) return false;
      lax.publish(authorizationGetSubject(app.digestText), "", { reply });
      return false;
    });
    const frames = Array.from({ length: 8 }, (_, at) => fresh.shot(stock.id, "Stock.Count", `f${at}`));
    const echoes = await Promise.all(frames.map((shot) => fresh.ask(shot)));
    const answered = echoes.filter((echo) => echo?.kind === "results");
    expect(answered.every((echo) => echo?.kind === "results" && echo.authentic)).toBe(true);
    // At the worst the replica does not know the caller for a moment: it never takes it for another.
    const known = await eventually(async () => {
      const echo = await fresh.ask(fresh.shot(stock.id, "Stock.Count", "again"));
      return echo?.kind === "results" && echo.authentic;
    });
    expect(known).toBe(true);
    await replica.service.stop();
  });
});
