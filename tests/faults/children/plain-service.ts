import { TrellisService } from "@trellis/runtime/service";
import { workService } from "../contract.ts";

/** A service that starts and stops. It must end by itself. */
const service = await TrellisService.connect({ participant: workService, runtime: { log: false } }).orThrow();
service.handle.rpc.work.echo(({ input }) => ({ text: input.text }));
service.health.add("hangs", () => new Promise<never>(() => {}));
await service.start();
await service.stop();
console.log("stopped");
