import { TrellisService } from "@trellis/runtime/service";
import { billing } from "../../e2e/events-scene.ts";

/** A replica that says which events it begins and ends with; `hang`: it never ends with one. */
const [how = "work"] = process.argv.slice(2);
const service = await TrellisService.connect({ participant: billing, runtime: { log: false } }).orThrow();
service.event.order.placed.listen(
  async ({ event, context }) => {
    console.log(`begun ${event.payload.id} ${context.attempt}`);
    await new Promise((resolve) => setTimeout(resolve, how === "hang" ? 600_000 : 1));
    console.log(`done ${event.payload.id}`);
  },
  { group: "billing" },
);
await service.start();
console.log("ready");
process.stdin.once("data", () => {
  process.stdin.destroy();
  void service.stop().then(() => console.log("stopped"));
});
