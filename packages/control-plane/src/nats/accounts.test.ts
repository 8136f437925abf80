import { connect, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { startNats, type TestNats } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { renderAccounts } from "./accounts.ts";
import { renderExternalConfig } from "./config.ts";
import { newPlatformSeeds, nkeyAuthenticator, publicKeysOf } from "./platform-keys.ts";

const seeds = newPlatformSeeds();
const keys = publicKeysOf(seeds);
const NOTICES = 1_500;
let nats: TestNats;
let ctl: NatsConnection;
let app: NatsConnection;

beforeAll(async () => {
  nats = await startNats({ keys });
  ctl = await connect({ servers: nats.url, authenticator: nkeyAuthenticator(seeds.ctl) });
  app = await connect({ servers: nats.url, authenticator: nkeyAuthenticator(seeds.app) });
  const streams = [
    { name: "TRELLIS_AUTHORIZATIONS", subjects: ["authorization.*", "grants.*"] },
    { name: "TRELLIS_NOTICES", subjects: ["notice.>"], republish: { src: "notice.>", dest: "ctl.notice.>" } },
  ];
  for (const stream of streams) {
    const body = JSON.stringify({ storage: "memory", allow_direct: true, ...stream });
    const created = await ctl.request(`$JS.API.STREAM.CREATE.${stream.name}`, body);
    expect(created.json()).not.toHaveProperty("error");
  }
});
afterAll(async () => {
  await Promise.all([ctl?.close(), app?.close()]);
  await nats?.stop();
});

const header = (message: Msg, name: string) => message.headers?.get(name) ?? "";

/** All answers to one request, up to and including the one with a status. */
function batch(body: unknown): Promise<Msg[]> {
  const inbox = `_INBOX.test.${crypto.randomUUID()}`;
  const answers: Msg[] = [];
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`only ${answers.length} answers`)), 5_000);
    const subscription = app.subscribe(inbox, {
      callback: (error, message) => {
        if (error !== null) return reject(error);
        answers.push(message);
        if ((message.headers?.code ?? 0) === 0) return;
        clearTimeout(timer);
        subscription.unsubscribe();
        resolve(answers);
      },
    });
    app.publish("ctl.get.notices", JSON.stringify(body), { reply: inbox });
  });
}

describe("what APP sees of CTL", () => {
  test("authorizations, grants and notices by direct get; the answer names its stream and subject", async () => {
    for (const subject of ["authorization.abc", "grants.def", "notice.route.d1"]) {
      await ctl.request(subject, `body of ${subject}`);
      const answer = await app.request(`ctl.get.${subject}`, "");
      expect(answer.string()).toBe(`body of ${subject}`);
      expect(header(answer, "Nats-Subject")).toBe(subject);
    }
    const missing = await app.request("ctl.get.authorization.none", "");
    expect(missing.headers?.code).toBe(404);
  });

  test("a batch direct get gives every notice and ends with 204 EOB", async () => {
    for (let index = 0; index < NOTICES; index += 1)
      ctl.publish(`notice.revocation.id${index}`, String(index));
    const [last] = [await ctl.request("notice.revocation.last", "last")];
    expect(last.json()).toMatchObject({ stream: "TRELLIS_NOTICES" });

    const all = await batch({ seq: 1, batch: 10_000, next_by_subj: "notice.>" });
    const end = all.at(-1);
    expect([end?.headers?.code, end?.headers?.description]).toEqual([204, "EOB"]);
    // The one of the test before, the many, the last one, the end.
    expect(all).toHaveLength(1 + NOTICES + 1 + 1);
    expect(end === undefined ? "" : header(end, "Nats-Num-Pending")).toBe("0");
    expect(end === undefined ? "" : header(end, "Nats-Last-Sequence")).toBe(String(NOTICES + 2));

    const some = await batch({ seq: 1, batch: 100, next_by_subj: "notice.>" });
    expect(some).toHaveLength(101);
    const rest = some.at(-1);
    expect(rest === undefined ? "" : header(rest, "Nats-Num-Pending")).toBe(String(NOTICES + 2 - 100));
    expect((await batch({ seq: 1_000_000, batch: 1, next_by_subj: "notice.>" }))[0]?.headers?.code).toBe(404);
  });

  test("notices arrive live", async () => {
    const subscription = app.subscribe("ctl.notice.>", { max: 1 });
    await app.flush();
    await ctl.request("notice.connection-end.c1", "gone");
    for await (const message of subscription) {
      expect([message.subject, message.string()]).toEqual(["ctl.notice.connection-end.c1", "gone"]);
    }
  });

  test("nothing else: no other API, no way in, no other account", async () => {
    for (const subject of [
      "$JS.API.DIRECT.GET.TRELLIS_NOTICES",
      "$JS.API.DIRECT.GET.TRELLIS_AUTHORIZATIONS.authorization.abc",
      "ctl.get.other",
      "ctl.get.authorization.abc.def",
      "$SYS.REQ.SERVER.PING",
    ]) {
      await expect(app.request(subject, "", { timeout: 500 })).rejects.toThrow("no responders");
    }
    const info = (await app.request("$JS.API.STREAM.INFO.TRELLIS_NOTICES", "")).json();
    expect(info).toMatchObject({ error: { code: 404 } });
    const state = async () =>
      (await ctl.request("$JS.API.STREAM.INFO.TRELLIS_NOTICES", "")).json<{ state: { messages: number } }>()
        .state;
    const before = await state();
    // An answer whose reply subject is one that CTL stores must stay in APP.
    app.publish("notice.revocation.evil", "x");
    app.publish("ctl.notice.revocation.evil", "x");
    app.publish("ctl.get.authorization.abc", "", { reply: "notice.revocation.evil" });
    await app.flush();
    await app.request("ctl.get.authorization.abc", "");
    expect((await state()).messages).toBe(before.messages);
  });

  test("whoever is not a listed user goes to the callout, sealed", async () => {
    const callout = await connect({ servers: nats.url, authenticator: nkeyAuthenticator(seeds.callout) });
    const subscription = callout.subscribe("$SYS.REQ.USER.AUTH", { max: 1 });
    await callout.flush();
    const stranger = connect({ servers: nats.url, reconnect: false, timeout: 300 }).catch(() => "refused");
    for await (const request of subscription) {
      expect(header(request, "Nats-Server-Xkey")).toMatch(/^X/);
      expect(request.string()).toMatch(/^xkv1/);
      // Not an answer: refused at once. Without one the server would wait, at its stop too.
      request.respond("no");
    }
    expect(await stranger).toBe("refused");
    await callout.close();
  });
});

test("the file holds public keys only, and nothing but a key gets into it", () => {
  const text = renderExternalConfig({ keys });
  for (const seed of Object.values(seeds)) expect(text).not.toContain(seed);
  for (const key of Object.values(keys)) expect(text).toContain(key);
  expect(() => renderAccounts({ ...keys, ctl: seeds.ctl })).toThrow("ctl: not a public NATS user key");
  expect(() => renderAccounts({ ...keys, issuer: `${keys.issuer}\n}` })).toThrow("issuer");
});
