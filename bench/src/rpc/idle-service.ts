import { TrellisService } from "@trellis/runtime/service";
import { echoService } from "./contract.js";

const service = await TrellisService.connect({ participant: echoService, runtime: { log: false } }).orThrow();
service.handle.rpc.echo.item(({ input }) => input);
await service.start();
process.on("message", () => process.send?.(process.memoryUsage.rss()));
process.on("disconnect", () => process.exit(0));
process.send?.("ready");
