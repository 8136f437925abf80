import { readFileSync } from "node:fs";
import { jetstream } from "@nats-io/jetstream";
import { fork } from "node:child_process";
import { once } from "node:events";
import { startEvents, order, authorize, EventLink, listening, type Outer } from "./events.test-kit.ts";
import { connect } from "@nats-io/transport-node";
import { createConnectionKeys } from "../connect/connection-keys.ts";
import { nodePort } from "../platform/node/port.ts";

if (process.argv[2] === "child") {
  const [, , , servers, kind, binding] = process.argv;
  let count = 0;
  let want = Infinity;
  const hit = () => { if (++count === want) report(); };
  let cpu = process.cpuUsage();
  process.on("message", (m) => { want = m as number; count = 0; cpu = process.cpuUsage(); process.send!("set"); });
  const report = () => { const c = process.cpuUsage(cpu); process.send!((c.user + c.system) / want); };
  if (kind === "raw") {
    const nc = await connect({ servers });
    const c = await jetstream(nc, { checkAPI: false }).consumers.get("RAW", "raw");
    await c.consume({ max_messages: 500, callback: (m) => { JSON.parse(m.string()); m.ack(); hit(); } });
  } else {
    const keys = createConnectionKeys(nodePort, undefined).orThrow();
    const link = new EventLink(await connect({ servers }), { keys, session: authorize(new Map(), { deployment: "billing1", keys }) });
    const surface = listening(link, { wide: JSON.parse(binding!) }, false);
    (surface.facade as any).order.placed.listen(() => { hit(); }, { group: "wide" });
    surface.start();
  }
  process.on("disconnect", () => process.exit());
  if (process.env["PROF"] && kind !== "raw") { const { Session } = await import("node:inspector"); const { writeFileSync } = await import("node:fs"); const ss = new Session(); ss.connect(); ss.post("Profiler.enable"); ss.post("Profiler.start"); process.on("disconnect", () => {}); process.removeAllListeners("disconnect"); process.on("disconnect", () => ss.post("Profiler.stop", (e, r) => { writeFileSync("/tmp/eb/con.cpuprofile", JSON.stringify(r.profile)); process.exit(); })); }
  process.send!("ready");
} else {
  const bed = await startEvents();
  await bed.manager.streams.add({ name: "RAW", subjects: ["raw.>"], duplicate_window: 120_000_000_000 });
  await bed.manager.consumers.add("RAW", { durable_name: "raw", ack_policy: "explicit" as never, max_ack_pending: 20000 });
  const binding = await bed.provision("wide", { max_ack_pending: 20_000 });
  const start = async (...args: string[]) => { const c = fork(process.argv[1]!, ["child", bed.nats.url, ...args], { execArgv: [...process.execArgv, ...(process.env["PROF"] && args[0] !== "raw" ? ["--cpu-prof", "--cpu-prof-dir=/tmp/eb"] : [])] }); await once(c, "message"); return c; };
  const rawChild = await start("raw");
  const ourChild = await start("ours", JSON.stringify(binding));
  const { event, link } = await bed.shop();
  let sigs = 0; const { sign } = link.keys.session; Object.assign(link.keys.session, { sign: (d: Uint8Array) => { sigs++; return sign(d); } });
  { const k = (bed as any); }
  const rawNc = await connect({ servers: bed.nats.url });
  const js = jetstream(rawNc, { checkAPI: false });
  const enc = new TextEncoder();
  const raw = () => js.publish("raw.a", enc.encode(JSON.stringify(order({ pad: "x".repeat(80) }))));
  const rawId = () => { const o = order({ pad: "x".repeat(80) }); return js.publish("raw.a", enc.encode(JSON.stringify(o)), { msgID: o.id }); };
  const ours = () => event.order.placed.publish(order({ pad: "x".repeat(80) })).orThrow();
  const run = async (child: any, call: () => PromiseLike<unknown>, n: number, inFlight: number) => {
    child.send(n); await once(child, "message");
    const done = once(child, "message");
    const c0 = process.cpuUsage(); const s0 = serverCpu();
    let left = n; const t = performance.now();
    await Promise.all(Array.from({ length: inFlight }, async () => { while (left-- > 0) await call(); }));
    const tp = performance.now() - t;
    const [cc] = await done; const c = process.cpuUsage(c0); const sv = serverCpu() - s0;
    const b = sigs === 0 ? 0 : n / sigs; sigs = 0;
    return [`batch ${b.toFixed(1)} cpu us: pub ${((c.user + c.system) / n).toFixed(1)} con ${Number(cc).toFixed(1)} srv ${(sv / n).toFixed(1)}`, Math.round(n / tp * 1000), Math.round(n / (performance.now() - t) * 1000)];
  };
  const serverCpu = () => { const f = readFileSync(`/proc/${bed.nats.pid}/stat`, "utf8").split(" "); return (Number(f[13]) + Number(f[14])) * 10000; };
  const n = Number(process.env["N"] ?? 20000);
  for (let i = 0; i < 3; i++) for (const f of [64, 256]) {
    console.log(f, "raw", await run(rawChild, raw, n, f), "rawId", await run(rawChild, rawId, n, f), "ours", await run(ourChild, ours, n, f));
  }
  const lat = async (call: () => PromiseLike<unknown>) => { const l: number[] = []; for (let i = 0; i < 1000; i++) { const t = performance.now(); await call(); l.push(performance.now() - t); } l.sort((a, b) => a - b); return [l[500], l[950]]; };
  console.log("lat raw", await lat(raw), "ours", await lat(ours));
  rawChild.disconnect(); ourChild.disconnect();
  await rawNc.close();
  await bed[Symbol.asyncDispose]();
}
