import { TrellisService } from "@trellis/runtime/service";
import { auditService } from "../contracts/audit.ts";

const service = await TrellisService.connect({ participant: auditService }).orThrow();

// An event may come twice, after a crash say. Under its own id it is one entry, however often it is written.
service.event.site.registered.listen(async ({ event: { id, payload }, client }) => {
  const entry = { id, site: payload.id, what: `registered ${payload.id}` };
  await client.kv.entries.put(`${payload.id}/${id}`, entry).orThrow();
});
service.event.evidence.attached.listen(async ({ event: { id, payload }, client }) => {
  const entry = { id, site: payload.site, what: `attached ${payload.key}` };
  await client.kv.entries.put(`${payload.site}/${id}`, entry).orThrow();
});

// One session for each consumer: a watch gives what is there, then what is new, no faster than it is read.
service.handle.feed.audit.live(async ({ input, emit, signal, client }) => {
  for await (const change of client.kv.entries.watch({ prefix: `${input.site}/`, signal })) {
    if (change.kind === "value") await emit(change.value);
  }
});

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => void service.stop());
await service.wait();
