// A process of the service that kills itself: `<server> <binding as JSON> <queue> <role> <point> <before | after>`.
// Its n-th write to the broker, acknowledgements included, is the last thing that it does, or the first that it does not.
import type { JobsBinding } from "@trellis/protocol/jobs";
import { openReplica } from "../../../packages/runtime/src/jobs/jobs.test-kit.ts";
import { RetryJobError } from "../../../packages/runtime/src/jobs/retry-job-error.ts";

const [servers = "", bindingText = "{}", queue = "plain", role = "work", pointText = "0", when = "after"] =
  process.argv.slice(2);
const point = Number(pointText);
const replica = await openReplica(servers, JSON.parse(bindingText) as JobsBinding);
const { broker } = replica.link;
const publishWith = broker.publishWith.bind(broker);
let writes = 0;

broker.publishWith = (subject, payload, options) => {
  const counts = /^(jobs|jobwork|jobpark|\$KV|\$JS\.ACK)/.test(subject) && payload.length !== 4;
  if (counts) writes += 1;
  if (counts && writes === point) {
    if (when === "before") process.kill(process.pid, "SIGKILL");
    const sent = publishWith(subject, payload, options);
    // The bytes are to leave this process, and nothing after them.
    void replica.link.nats.flush().finally(() => process.kill(process.pid, "SIGKILL"));
    broker.publishWith = () => false;
    return sent;
  }
  return publishWith(subject, payload, options);
};

const calls = replica.jobs[queue as "plain" | "keyed"];
if (role === "work") {
  calls.handle(
    async ({ job }) => {
      process.stdout.write(`handling ${job.id} ${job.tries}\n`);
      if (role === "work" && job.payload.pad === "retry" && job.tries === 1) throw new RetryJobError();
      if (job.payload.pad === "slow") await new Promise((resolve) => setTimeout(resolve, 30));
      if (job.payload.pad === "poison") process.kill(process.pid, "SIGKILL");
      if (job.payload.pad === "hang") return new Promise(() => {});
      if (job.payload.pad === "block") {
        const end = performance.now() + 3_500;
        while (performance.now() < end);
      }
      return { n: job.payload.n };
    },
    { concurrency: 4 },
  );
  await replica.start();
} else {
  for (let n = 0; ; n += 1) {
    const made = await calls.create({
      n,
      site: n % 2,
    });
    process.stdout.write(`made ${made.isOk() ? made.value.id : "none"}\n`);
  }
}
process.stdout.write("ready\n");
process.on("SIGTERM", () => void replica.stop(500).then(() => process.exit(0)));
