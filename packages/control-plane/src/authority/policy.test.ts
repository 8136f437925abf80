import { describe, expect, it } from "vitest";
import type { AuthorityArtifact } from "./artifact.ts";
import { resolveBindings } from "./binding.ts";
import { comparePolicies, compilePermissions, policyOf, sealPolicy, storedPolicy } from "./policy.ts";

const none = { rpc: {}, events: {}, feeds: {}, operations: {} };
const stock = { id: "acme.stock@v1", ...none, rpc: { "Stock.Count": null, "Stock.Reserve": null } };

const service: AuthorityArtifact = {
  format: "trellis.participant/v1",
  kind: "service",
  id: "acme.orders",
  implements: [{ id: "acme.orders@v1", ...none, rpc: { "Orders.Place": null, Ping: null } }],
  uses: [{ api: "acme.stock@v1", ...none, rpc: { "Stock.Count": null } }],
  kv: {},
  store: {},
  consumers: {},
  jobs: {},
  state: {},
};
const nothing = { kv: {}, store: {}, consumers: {}, jobs: null };

function policy(artifact: AuthorityArtifact, provider = "S1") {
  const bindings = resolveBindings({
    uses: artifact.uses,
    providers: [{ id: provider, disabled: false, artifact: { implements: [stock] } }],
    chosen: new Map(),
  });
  return policyOf({ deployment: "D1", artifact, bindings, resources: nothing });
}

describe("permissions", () => {
  it("of a service are exactly its own and its used subjects", () => {
    const { pub, sub } = compilePermissions(policy(service), "C1");
    expect([...sub].sort()).toEqual([
      "_INBOX.C1.>",
      "ctl.notice.>",
      "ctl.v1.D1.C1",
      "ctl.v1.D1.all",
      "rpc.v1.acme_orders@v1.D1.Orders_Place rpc.v1.acme_orders@v1.D1.Orders_Place",
      "rpc.v1.acme_orders@v1.D1.Ping rpc.v1.acme_orders@v1.D1.Ping",
    ]);
    expect([...pub].sort()).toEqual([
      "_INBOX.*.r.>",
      "ctl.get.authorization.*",
      "ctl.get.grants.*",
      "ctl.get.notice.route.D1",
      "ctl.get.notice.route.S1",
      "ctl.get.notices",
      "ctl.v1.S1.*",
      "health.v1.service.D1.C1",
      "rpc.v1.acme_stock@v1.S1.Stock_Count",
    ]);
  });

  it("of an app hold neither a provider's subjects nor other inboxes", () => {
    const { pub, sub } = compilePermissions(policy({ ...service, kind: "app", implements: [] }), "C2");
    expect([...sub].sort()).toEqual(["_INBOX.C2.>", "ctl.notice.>"]);
    expect([...pub].sort()).toEqual([
      "ctl.get.notice.route.S1",
      "ctl.get.notices",
      "ctl.v1.S1.*",
      "rpc.v1.acme_stock@v1.S1.Stock_Count",
    ]);
  });

  it("are never empty and never hold everything or the system's subjects", () => {
    for (const kind of ["service", "app"] as const) {
      const lists = compilePermissions(policy({ ...service, kind, implements: [], uses: [] }), "C3");
      for (const list of [lists.pub, lists.sub]) {
        expect(list.length).toBeGreaterThan(0);
        expect(list.filter((subject) => /^(>|\*)|\$SYS|\$JS/.test(subject))).toEqual([]);
      }
    }
  });

  it("have one digest for one content, and survive storage", () => {
    const first = sealPolicy(policy(service));
    expect(sealPolicy(policy({ ...service })).digest).toBe(first.digest);
    expect(storedPolicy(first.body)).toEqual(policy(service));
    expect(() => storedPolicy("{}")).toThrow();
  });

  it("compare as equal, wider or narrower", () => {
    const base = policy(service);
    const more = policy({
      ...service,
      uses: [{ api: "acme.stock@v1", ...none, rpc: { "Stock.Count": null, "Stock.Reserve": null } }],
    });
    expect(comparePolicies(base, base)).toBe("equal");
    expect(comparePolicies(base, more)).toBe("wider");
    expect(comparePolicies(more, base)).toBe("narrower");
    expect(comparePolicies(base, policy(service, "S2"))).toBe("narrower");
  });
});

describe("bindings", () => {
  const provider = (id: string, disabled = false) => ({ id, disabled, artifact: { implements: [stock] } });
  const uses = service.uses;

  it("take the only provider, or the chosen one of several", () => {
    const one = resolveBindings({ uses, providers: [provider("S1")], chosen: new Map() });
    expect(one.bound.map((binding) => binding.provider)).toEqual(["S1"]);
    const chosen = new Map([["acme.stock@v1", "S2"]]);
    const two = resolveBindings({ uses, providers: [provider("S1"), provider("S2")], chosen });
    expect(two.bound.map((binding) => binding.provider)).toEqual(["S2"]);
  });

  it("refuse to guess, unless the use is optional", () => {
    const providers = [provider("S2"), provider("S1")];
    const required = resolveBindings({ uses, providers, chosen: new Map() });
    expect(required).toMatchObject({
      bound: [],
      ambiguous: [{ api: "acme.stock@v1", providers: ["S1", "S2"] }],
    });
    const optional = uses.map((use) => ({ ...use, optional: true }));
    expect(resolveBindings({ uses: optional, providers, chosen: new Map() })).toMatchObject({
      ambiguous: [],
      unbound: [{ api: "acme.stock@v1", reason: "ambiguous" }],
    });
  });

  it("say why there is none", () => {
    expect(resolveBindings({ uses, providers: [], chosen: new Map() }).unbound).toEqual([
      { api: "acme.stock@v1", reason: "no_provider" },
    ]);
    expect(resolveBindings({ uses, providers: [provider("S1", true)], chosen: new Map() }).unbound).toEqual([
      { api: "acme.stock@v1", reason: "provider_disabled" },
    ]);
  });
});
