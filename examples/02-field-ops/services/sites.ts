import { TrellisService } from "@trellis/runtime/service";
import { SiteExists, SiteUnknown, sitesService } from "../contracts/sites.ts";

const service = await TrellisService.connect({ participant: sitesService }).orThrow();
const evidence = await service.store.evidence.open().orThrow();

service.handle.rpc.sites.register(async ({ input, client }) => {
  // The broker decides who is first, also between two replicas of this service.
  const created = await client.kv.sites.create(input.id, input);
  if (created.isErr() && created.error.type === "KVError" && created.error.reason === "exists")
    return new SiteExists({ data: { id: input.id } });
  created.orThrow();
  const { id } = await client.event.site.registered.publish(input).orThrow();
  return { event: id };
});

service.handle.rpc.sites.list(async ({ client }) => {
  const entries = await client.kv.sites.entries().collect().orThrow();
  // A value that no longer fits the contract is an entry of its own kind, and no reason to fail for the others.
  return entries.flatMap((entry) => (entry.kind === "value" ? [entry.value] : []));
});

service.handle.rpc.evidence.attach(async ({ input, client }) => {
  const { site, name, text } = input;
  if ((await client.kv.sites.get(site).orThrow()) === undefined)
    return new SiteUnknown({ data: { id: site } });
  const key = `${site}/${name}`;
  const { size } = await evidence
    .put(key, new TextEncoder().encode(text), { contentType: "text/plain" })
    .orThrow();
  const { id } = await client.event.evidence.attached.publish({ site, key }).orThrow();
  return { key, size, event: id };
});

service.handle.rpc.evidence.list(async ({ input }) => {
  const page = await evidence.list({ prefix: `${input.site}/` }).orThrow();
  return page.items.map(({ key, size }) => ({ key, size }));
});

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => void service.stop());
await service.wait();
