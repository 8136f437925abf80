import { startTrellis } from "@trellis/testing";
import { billing, managerOf, consumerOf, shop } from "../e2e/events-scene.ts";
import { startChild } from "./child.ts";
const trellis = await startTrellis();
const svc = await trellis.service(shop, () => {});
const placed = svc.client.event.order.placed;
const one = startChild(trellis, "event-consumer");
const two = startChild(trellis, "event-consumer");
await Promise.all([one.line("ready"), two.line("ready")]);
let published = 0, errors = 0, running = true;
void Promise.all(Array.from({ length: 8 }, async (_, i) => {
  for (let n = 0; running; n++) {
    const r = await placed.publish({ id: `${i}-${n}`, region: "eu" });
    if (r.isErr()) { errors++; console.log("ERR", r.error.type, r.error.message, (r.error as any).cause); } else published++;
  }
}));
const done = () => [one, two].map((c) => c.lines.filter((l) => l.startsWith("done")).length).join("+");
const t0 = Date.now();
for (let round = 0; round < 30; round++) {
  const before = published; const t = Date.now();
  while (published < before + 50) {
    await new Promise((r) => setTimeout(r, 20));
    if (Date.now() - t > 8000) {
      console.log("STUCK publishing", svc.connection.status, one.lines.at(-1), two.lines.at(-1));
      const m = await managerOf(trellis);
      console.log(await m.streams.info("TRELLIS_EVENTS").then((i)=>i.state, (e) => String(e)));
      await new Promise((r) => setTimeout(r, 20000));
      console.log("later", published - before, svc.connection.status);
      process.exit(1);
    }
  }
  const s = Date.now();
  console.log(round, Date.now() - t0, "pub", published, "done", done(), svc.connection.status.phase);
  await trellis.restartNats({ kill: round % 2 === 1 });
  if (Date.now() - s > 3000) console.log("slow restart", Date.now() - s);
}
running = false;
for (let i = 0; i < 60; i++) {
  await new Promise((r) => setTimeout(r, 500));
  const m = await managerOf(trellis);
  const info = await m.consumers.info("TRELLIS_EVENTS", await consumerOf(trellis, "billing"));
  if (i % 6 === 0) console.log("end", published, done(), info.num_pending, info.num_ack_pending, info.num_waiting);
  if (info.num_pending + info.num_ack_pending === 0) break;
}
console.log("unique", new Set([one, two].flatMap((c) => c.lines.filter((l) => l.startsWith("done")))).size, "errors", errors);
process.exit(0);
