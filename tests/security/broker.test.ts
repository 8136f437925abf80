import { controlSubject, healthSubject, rpcSubject } from "@trellis/protocol";
import type { TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Attacker } from "./attacker.ts";
import { mayPublish, maySubscribe } from "./broker-probe.ts";
import {
  intruderApp,
  intruderService,
  shop,
  startScene,
  startStock,
  startVault,
  stock,
  trap,
  vault,
} from "./scene.ts";

let trellis: TestTrellis;
let app: Attacker;
let service: Attacker;
let victim: Attacker;
let stockDeployment: string;
let vaultDeployment: string;
const intruders = (): [string, Attacker][] => [
  ["an application", app],
  ["a service", service],
];

beforeAll(async () => {
  trellis = await startScene();
  stockDeployment = (await startStock(trellis)).service.auth.deployment;
  vaultDeployment = (await startVault(trellis)).auth.deployment;
  app = await Attacker.join(trellis, intruderApp);
  service = await Attacker.join(trellis, intruderService);
  victim = await Attacker.join(trellis, shop);
});
afterAll(async () => {
  await Promise.all([app, service, victim].map((attacker) => attacker?.close()));
  await trellis?.stop();
});

/** Those of the subjects for which the broker's answer is not the wanted one. */
async function wrong(
  subjects: readonly string[],
  ask: (subject: string) => Promise<boolean>,
): Promise<string[]> {
  const found: string[] = [];
  for (const subject of subjects) if (await ask(subject)) found.push(subject);
  return found;
}

/** Subjects that let somebody listen to what is not theirs. */
function foreignListening(self: Attacker): string[] {
  const count = rpcSubject({ api: stock.id, deployment: stockDeployment, action: "Stock.Count" });
  const others = [stockDeployment, vaultDeployment];
  return [
    ">",
    "*",
    "*.>",
    "*.*.>",
    "$JS.>",
    "$JS.API.>",
    "$JS.ACK.>",
    "$JS.EVENT.>",
    "$KV.>",
    "$O.>",
    "$SYS.>",
    "$SYS.ACCOUNT.APP.CONNECT",
    "_INBOX.>",
    "_INBOX.*.>",
    "_INBOX.*.r.*",
    `${victim.inbox}.>`,
    `${victim.inbox}.r.>`,
    `${victim.inbox}.j.*`,
    `${self.inbox.slice(0, -1)}*.>`,
    "_R_.>",
    "rpc.>",
    "rpc.v1.>",
    count,
    count.replace("Stock_Count", "*"),
    "rpc.v1.*.*.*",
    "ctl.>",
    "ctl.get.>",
    "ctl.v1.>",
    ...others.flatMap((deployment) => [
      controlSubject(deployment, "all"),
      controlSubject(deployment, victim.answer.connection),
      `ctl.v1.${deployment}.*`,
      `health.v1.service.${deployment}.*`,
    ]),
    "health.>",
    "events.>",
    "jobs.>",
    "notice.>",
    "authorization.*",
    "$SYS.REQ.USER.AUTH",
  ];
}

describe("listening", () => {
  it("works on what is one's own", async () => {
    for (const [, self] of intruders()) {
      expect(await maySubscribe(self.nats, `${self.inbox}.r.*`)).toBe(true);
      expect(await maySubscribe(self.nats, "ctl.notice.>")).toBe(true);
    }
    const own = rpcSubject({ api: trap.id, deployment: service.deployment, action: "Trap.Enter" });
    expect(await maySubscribe(service.nats, own, own)).toBe(true);
    expect(await maySubscribe(service.nats, controlSubject(service.deployment, "all"))).toBe(true);
    const self = controlSubject(service.deployment, service.answer.connection);
    expect(await maySubscribe(service.nats, self)).toBe(true);
  });

  it("is refused on everything else, alone and in a queue group", async () => {
    for (const [kind, self] of intruders()) {
      const subjects = foreignListening(self);
      expect(await wrong(subjects, (subject) => maySubscribe(self.nats, subject)), kind).toEqual([]);
      const queued = (subject: string) => maySubscribe(self.nats, subject, "workers");
      expect(await wrong(subjects, queued), `${kind}, queue`).toEqual([]);
      const sameQueue = (subject: string) => maySubscribe(self.nats, subject, subject);
      expect(await wrong(subjects, sameQueue), `${kind}, the victims' queue`).toEqual([]);
    }
  });

  it("on one's own actions is bound to the queue group: no replica hears all calls", async () => {
    const own = rpcSubject({ api: trap.id, deployment: service.deployment, action: "Trap.Enter" });
    expect(await maySubscribe(service.nats, own)).toBe(false);
    expect(await maySubscribe(service.nats, own, "spies")).toBe(false);
  });

  it("to a sibling's control subject is refused", async () => {
    await using sibling = await Attacker.join(trellis, intruderService);
    expect(sibling.deployment).toBe(service.deployment);
    const subject = controlSubject(service.deployment, sibling.answer.connection);
    expect(await maySubscribe(sibling.nats, subject)).toBe(true);
    expect(await maySubscribe(service.nats, subject)).toBe(false);
  });
});

/** Every JetStream API call that could read, change or fill what is somebody else's. */
function jetStreamCalls(): string[] {
  const streams = ["KV_acme", "JOBS_acme", "EVENTS", "TRELLIS_NOTICES", "TRELLIS_AUTHORIZATIONS"];
  return [
    "$JS.API.INFO",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.LIST",
    "$JS.API.ACCOUNT.PURGE.APP",
    "$JS.API.META.LEADER.STEPDOWN",
    "$JS.API.SERVER.REMOVE",
    ...streams.flatMap((stream) => [
      ...["CREATE", "UPDATE", "INFO", "DELETE", "PURGE", "SNAPSHOT", "RESTORE", "MSG.GET", "MSG.DELETE"].map(
        (call) => `$JS.API.STREAM.${call}.${stream}`,
      ),
      ...["PEER.REMOVE", "LEADER.STEPDOWN"].map((call) => `$JS.API.STREAM.${call}.${stream}`),
      ...["CREATE", "LIST", "NAMES"].map((call) => `$JS.API.CONSUMER.${call}.${stream}`),
      ...["CREATE", "DURABLE.CREATE", "INFO", "DELETE", "PAUSE", "UNPIN", "MSG.NEXT", "RESET"].map(
        (call) => `$JS.API.CONSUMER.${call}.${stream}.work`,
      ),
      `$JS.API.CONSUMER.CREATE.${stream}.work.orders.>`,
      `$JS.API.DIRECT.GET.${stream}`,
      `$JS.API.DIRECT.GET.${stream}.$KV.acme.key`,
      `$JS.ACK.${stream}.work.1.1.1.1700000000.0`,
      `$JS.ACK._.hash.${stream}.work.1.1.1.1700000000.0`,
      `$JS.FC.${stream}.work.1`,
      `$JS.SNAPSHOT.RESTORE.${stream}.1`,
    ]),
  ];
}

function systemCalls(): string[] {
  const server = trellis.controlPlane.plane.links.sys.info?.server_id ?? "";
  return [
    "$SYS.REQ.USER.INFO",
    "$SYS.REQ.USER.AUTH",
    "$SYS.REQ.SERVER.PING",
    "$SYS.REQ.SERVER.PING.CONNZ",
    "$SYS.REQ.SERVER.PING.JSZ",
    "$SYS.REQ.ACCOUNT.PING.CONNZ",
    "$SYS.REQ.ACCOUNT.APP.CONNZ",
    "$SYS.REQ.ACCOUNT.CTL.SUBSZ",
    `$SYS.REQ.SERVER.${server}.KICK`,
    `$SYS.REQ.SERVER.${server}.LDM`,
    `$SYS.REQ.SERVER.${server}.CONNZ`,
    `$SYS.REQ.SERVER.${server}.RELOAD`,
    "$SYS.REQ.CLAIMS.UPDATE",
    "$SYS.ACCOUNT.APP.DISCONNECT",
  ];
}

function foreignSpeaking(): string[] {
  const at = (action: string) => rpcSubject({ api: stock.id, deployment: stockDeployment, action });
  return [
    at("Stock.Count"),
    at("Stock.Destroy"),
    // Granted is one action of the vault, not its neighbour.
    rpcSubject({ api: vault.id, deployment: vaultDeployment, action: "Vault.Open" }),
    rpcSubject({ api: vault.id, deployment: stockDeployment, action: "Vault.Peek" }),
    controlSubject(stockDeployment, "all"),
    healthSubject({ kind: "service", deployment: stockDeployment, connection: victim.answer.connection }),
    `${victim.inbox}.j.x1`,
    `${victim.inbox}.x`,
    "_INBOX.trellis-app.x.1",
    "_INBOX.trellis-sys.x.1",
    "_R_.x.y",
    "ctl.notice.revocation.connection-x",
    "ctl.notice.route.x",
    "ctl.notice.connection-end.x",
    "ctl.get.everything",
    "ctl.get.notice.revocation.x",
    `ctl.get.notice.route.${stockDeployment}`,
    "notice.revocation.x",
    "authorization.x",
    "grants.x",
    "events.v1.acme_stock@v1.Stock_Moved",
    "jobs.v1.x.y.z.created",
    "$KV.acme.key",
    "$O.acme.C.x",
    "$SRV.PING",
    "anything",
  ];
}

describe("speaking", () => {
  it("works where it was granted", async () => {
    const peek = rpcSubject({ api: vault.id, deployment: vaultDeployment, action: "Vault.Peek" });
    for (const [, self] of intruders()) {
      for (const subject of [peek, controlSubject(vaultDeployment, "all"), "ctl.get.notices"]) {
        expect(await mayPublish(self.nats, subject), subject).toBe(true);
      }
      const echo = await self.ask(self.shot(vault.id, "Vault.Peek", null));
      expect(echo).toMatchObject({ kind: "results", authentic: true, results: [{ payload: "a door" }] });
    }
    const { deployment, answer } = service;
    const own = healthSubject({ kind: "service", deployment, connection: answer.connection });
    expect(await mayPublish(service.nats, own)).toBe(true);
    expect(await mayPublish(service.nats, `${victim.inbox}.r.x1`)).toBe(true);
  });

  it("is refused everywhere else", async () => {
    for (const [kind, self] of intruders()) {
      const foreign = await wrong(foreignSpeaking(), (subject) => mayPublish(self.nats, subject));
      expect(foreign, kind).toEqual([]);
    }
    expect(await mayPublish(app.nats, `${victim.inbox}.r.x1`)).toBe(false);
  });

  it("to the JetStream API and the server's own requests is refused", async () => {
    for (const [kind, self] of intruders()) {
      const foreign = [...jetStreamCalls(), ...systemCalls()];
      expect(await wrong(foreign, (subject) => mayPublish(self.nats, subject, { body: "{}" })), kind).toEqual(
        [],
      );
    }
  });
});
