// The other side of the benchmark, in a process of its own: our service, a bare responder and one of
// @nats-io/services, all of them in one process, of which only one is busy at a time.
import { setTimeout as pause } from "node:timers/promises";
import { Svcm } from "@nats-io/services";
import { connect } from "@nats-io/transport-node";
import { TrellisService } from "@trellis/runtime/service";
import { echoService } from "./contract.js";

const replica = process.argv[2] ?? "1";
const plainUrl = process.argv[3];

const service = await TrellisService.connect({ participant: echoService, runtime: { log: false } }).orThrow();
service.handle.rpc.echo.item(({ input }) => ({ ...input, qty: input.qty + 1 }));
service.handle.rpc.echo.alone(({ input }) => ({ ...input, qty: input.qty + 1 }));
service.handle.rpc.echo.slow(async () => {
  await pause(5);
  return { replica };
});
await service.start();

if (plainUrl !== undefined) {
  const nats = await connect({ servers: plainUrl });
  nats.subscribe("raw.echo", {
    queue: "q",
    callback: (_error, message) => void message.respond(message.data),
  });
  nats.subscribe("raw.slow", {
    queue: "q",
    callback: (_error, message) => void setTimeout(() => message.respond(replica), 5),
  });
  // oxlint-disable-next-line typescript/no-unnecessary-type-assertion -- it is, where the packages of the bench are not installed
  const services = await new Svcm(nats as never).add({ name: "echo", version: "1.0.0" });
  services.addEndpoint("echo", {
    subject: "services.echo",
    handler: (_error, message) => void message.respond(message.data),
  });
  await nats.flush();
}

process.on("message", (message) => {
  if (message === "memory") {
    globalThis.gc?.();
    process.send?.({ rss: process.memoryUsage.rss(), heap: process.memoryUsage().heapUsed });
  }
});
process.on("disconnect", () => process.exit(0));
process.send?.("ready");
