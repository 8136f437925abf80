import { connectTicks } from "../feeds-kit.ts";

/** A consumer that reads until it is killed: so many quiet feeds, and one that counts. */
const client = await connectTicks();
const quiet = Array.from({ length: Number(process.argv[2]) }, () => client.feed.ticks.quiet());
for (const stream of quiet) await stream.next();
console.log("reading");
try {
  for await (const { n } of client.feed.ticks.count({ perSecond: 50 })) console.log(`item ${n}`);
} catch (error) {
  console.log(`ended ${error instanceof Error && "reason" in error ? String(error.reason) : String(error)}`);
}
