import { defineApi, defineError, defineService, event, kv, rpc, store } from "@trellis/contract";
import { Type } from "typebox";

const SiteId = Type.String({ pattern: "^[a-z][a-z0-9-]{1,40}$" });
const Site = Type.Object({ id: SiteId, name: Type.String({ minLength: 1 }), region: Type.String() });

export const SiteExists = defineError("SiteExists", {
  data: Type.Object({ id: SiteId }),
  message: ({ id }) => `${id} is registered already`,
});
export const SiteUnknown = defineError("SiteUnknown", {
  data: Type.Object({ id: SiteId }),
  message: ({ id }) => `There is no site ${id}`,
});

export const sites = defineApi("field.sites@v1", {
  title: "Sites and what was found there",
  rpc: {
    "Sites.Register": rpc({
      input: Site,
      output: Type.Object({ event: Type.String() }),
      errors: [SiteExists],
    }),
    "Sites.List": rpc({ output: Type.Array(Site), idempotent: true }),
    "Evidence.Attach": rpc({
      title: "Keeps a note about a site",
      input: Type.Object({
        site: SiteId,
        name: Type.String({ minLength: 1, maxLength: 80 }),
        text: Type.String(),
      }),
      output: Type.Object({ key: Type.String(), size: Type.Integer(), event: Type.String() }),
      errors: [SiteUnknown],
    }),
    "Evidence.List": rpc({
      input: Type.Object({ site: SiteId }),
      output: Type.Array(Type.Object({ key: Type.String(), size: Type.Integer() })),
      idempotent: true,
    }),
  },
  events: {
    // The parameter is part of the subject: whoever wants one region only listens to that.
    "Site.Registered": event({ payload: Site, params: ["region"] }),
    "Evidence.Attached": event({ payload: Type.Object({ site: SiteId, key: Type.String() }) }),
  },
});

export const sitesService = defineService("field.sites-service", {
  title: "Sites",
  implements: [sites],
  /** One value for each site; the last five revisions of it are kept. */
  kv: { sites: kv({ value: Site, history: 5 }) },
  /** Bytes of any size, by key. */
  store: { evidence: store({ maxObject: "64MiB" }) },
});
