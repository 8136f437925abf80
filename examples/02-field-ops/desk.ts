import { TrellisClient } from "@trellis/runtime";
import { deskApp } from "./contracts/audit.ts";

await using client = await TrellisClient.connect({ participant: deskApp, runtime: { log: false } }).orThrow();

// State: one value of whoever is connected, kept by the platform.
const before = await client.state.visits.get().orThrow();
const count = (before?.value.count ?? 0) + 1;
await (before === undefined
  ? client.state.visits.create({ count })
  : client.state.visits.replace({ count }, { revision: before.revision })
).orThrow();
console.log(`Visit ${count}`);

// A call, with an expected failure.
const registered = await client.rpc.sites.register({ id: "oslo", name: "Oslo", region: "north" });
if (registered.isOk()) console.log("Registered oslo");
else if (registered.error.kind === "declared") console.log(registered.error.message);
else throw registered.error;

// A file: the service puts it into its store.
const text = "All bolts are tight.\n";
const attached = await client.rpc.evidence.attach({ site: "oslo", name: "bolts.txt", text }).orThrow();
console.log(`Attached ${attached.key}, ${attached.size} bytes`);

// A feed: what the audit knows of the site, then what is new. The event of our own attachment comes last.
for await (const entry of client.feed.audit.live({ site: "oslo" }, { signal: AbortSignal.timeout(30_000) })) {
  console.log(`Audit: ${entry.what}`);
  if (entry.id === attached.event) break;
}
