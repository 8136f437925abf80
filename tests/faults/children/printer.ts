// A worker in a process of its own: tells which jobs it begins and ends; each takes as long as its payload says.
import { defineService, job } from "@trellis/contract";
import { TrellisService } from "@trellis/runtime/service";
import { Type } from "typebox";

export const press = defineService("acme.press", {
  jobs: {
    print: job({
      payload: Type.Object({ ms: Type.Integer(), site: Type.Optional(Type.String()) }),
      ackWait: "30s",
    }),
    keyed: job({
      payload: Type.Object({ ms: Type.Integer(), site: Type.String() }),
      keyConcurrency: { key: ["/site"] },
      queue: { maxQueuedPerKey: 100 },
      ackWait: "30s",
    }),
  },
});

if (process.argv[1] === import.meta.filename) {
  const service = await TrellisService.connect({ participant: press, runtime: { log: false } }).orThrow();
  const work = async (id: string, ms: number, signal: AbortSignal) => {
    process.stdout.write(`begun ${id}\n`);
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
    });
    process.stdout.write(`ended ${id}\n`);
  };
  service.jobs.print.handle(({ job }) => work(job.id, job.payload.ms, job.signal), { concurrency: 300 });
  service.jobs.keyed.handle(({ job }) => work(job.id, job.payload.ms, job.signal), { concurrency: 300 });
  process.once("SIGTERM", () => void service.stop({ timeout: 2_000 }).then(() => process.exit(0)));
  await service.start();
  process.stdout.write("ready\n");
}
