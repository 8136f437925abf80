import { consumer, defineApi, defineApp, defineService, feed, kv, state, use } from "@trellis/contract";
import { Type } from "typebox";
import { sites } from "./sites.ts";

const Entry = Type.Object({
  /** Id of the event that it is about. */
  id: Type.String(),
  site: Type.String(),
  what: Type.String(),
});

export const audit = defineApi("field.audit@v1", {
  title: "Who did what, as it happens",
  feeds: {
    "Audit.Live": feed({
      title: "What is known of a site, then everything new",
      input: Type.Object({ site: Type.String() }),
      event: Entry,
    }),
  },
});

export const auditService = defineService("field.audit-service", {
  title: "Audit",
  implements: [audit],
  uses: [use(sites, { rpc: [], events: ["Site.Registered", "Evidence.Attached"] })],
  kv: { entries: kv({ value: Entry, ttl: "90d" }) },
  /** Durable: what happens while this service is down is handled when it is back. */
  consumers: {
    field: consumer({
      events: [sites.events["Site.Registered"], sites.events["Evidence.Attached"]],
      replay: "all",
      concurrency: 1,
    }),
  },
});

/** The people at the desk: they call, and have a little state of their own. */
export const deskApp = defineApp("field.desk", {
  title: "Desk",
  uses: [use(sites), use(audit)],
  state: { visits: state({ value: Type.Object({ count: Type.Integer() }) }) },
});
