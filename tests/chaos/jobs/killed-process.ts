// A worker in a process of its own, to be killed in its handler: `<server> <binding as JSON> <queue>`.
// A job's `pad` says what its handler does.
import type { JobsBinding } from "@trellis/protocol/jobs";
import { openReplica } from "../../../packages/runtime/src/jobs/jobs.test-kit.ts";

const [servers = "", bindingText = "{}", queue = "plain"] = process.argv.slice(2);
const replica = await openReplica(servers, JSON.parse(bindingText) as JobsBinding);
const blockMs = 3_500;

replica.jobs[queue as "plain" | "keyed"].handle(
  ({ job }) => {
    process.stdout.write(`handling ${job.id} ${job.tries}\n`);
    if (job.payload.pad === "poison") process.kill(process.pid, "SIGKILL");
    if (job.payload.pad === "hang") return new Promise(() => {});
    if (job.payload.pad === "block") {
      const end = performance.now() + blockMs;
      while (performance.now() < end);
    }
    return { n: job.payload.n };
  },
  { concurrency: 4 },
);
await replica.start();
process.stdout.write("ready\n");
