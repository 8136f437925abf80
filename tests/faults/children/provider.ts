import { TrellisService } from "@trellis/runtime/service";
import { workService } from "../contract.ts";
import { plainHandlers } from "../kit.ts";

/** A replica that says what it does, until it is killed or told to stop. */
const service = await TrellisService.connect({ participant: workService, runtime: { log: false } }).orThrow();
plainHandlers(service, undefined, "child");
service.use((call, next) => {
  const { n } = call.input as { n?: number };
  console.log(`begun ${n}`);
  return next();
});
service.handle.rpc.work.fail(({ input }) => {
  // Blocks the event loop for so many ms.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(input.how));
  return "unblocked";
});
await service.start();
console.log(`ready ${service.auth.connectionId}`);
process.stdin.once("data", () => {
  process.stdin.pause();
  void service.stop().then(() => console.log("stopped"));
});
