import { TrellisService } from "@trellis/runtime/service";
import { tickProducers, ticksService } from "../feeds-kit.ts";

/** A replica that produces until it is killed or told to stop. */
const service = await TrellisService.connect({
  participant: ticksService,
  runtime: { log: false },
}).orThrow();
const produced = tickProducers(service, process.argv[2]);
await service.start();
console.log("ready");
process.stdin.once("data", () => {
  process.stdin.destroy();
  void service.stop().then(() => console.log(`stopped ${produced.running}`));
});
