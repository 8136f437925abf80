import { defineApi, defineApp, defineService, type Participant, rpc, use } from "@trellis/contract";
import { describe, expect, it } from "vitest";
import { storedArtifact } from "../../packages/control-plane/src/authority/artifact.ts";
import { compilePermissions, policyOf } from "../../packages/control-plane/src/authority/policy.ts";

const api = defineApi("acme.stock@v1", {
  rpc: { "Stock.Count": rpc(), "Stock.Destroy": rpc() },
});
const other = defineApi("acme.vault@v1", { rpc: { "Vault.Open": rpc(), "Vault.Peek": rpc() } });

const nothing = { kv: {}, store: {}, consumers: {}, jobs: null };

/** What the broker is told about one connection of a participant whose used APIs are all bound to `provider`. */
function permissionsOf(participant: Participant) {
  const artifact = storedArtifact(JSON.stringify(participant.artifact));
  const bound = artifact.uses.map((used) => ({ use: used, provider: "provider" }));
  const bindings = { bound, unbound: [], ambiguous: [] };
  return compilePermissions(
    policyOf({ deployment: "own", artifact, bindings, resources: nothing }),
    "connection",
  );
}

const participants = {
  "a service that uses and provides": defineService("acme.stock", {
    implements: [api],
    uses: [use(other, { rpc: ["Vault.Peek"] })],
  }),
  "a service that does nothing": defineService("acme.idle", { implements: [] }),
  "an app that uses": defineApp("acme.shop", { uses: [use(api, { rpc: ["Stock.Count"] })] }),
  "an app that does nothing": defineApp("acme.idle-app", { uses: [] }),
};

describe("the allow lists", () => {
  it("of a service are exactly these", () => {
    expect(permissionsOf(participants["a service that uses and provides"])).toEqual({
      pub: [
        "ctl.get.notices",
        "rpc.v1.acme_vault@v1.provider.Vault_Peek",
        "ctl.v1.provider.*",
        "ctl.get.notice.route.provider",
        "_INBOX.*.r.>",
        "ctl.get.authorization.*",
        "ctl.get.grants.*",
        "ctl.get.notice.route.own",
        "health.v1.service.own.connection",
      ],
      sub: [
        "_INBOX.connection.>",
        "ctl.notice.>",
        "ctl.v1.own.all",
        // "subject queue": only as a member of that queue group.
        "rpc.v1.acme_stock@v1.own.Stock_Count rpc.v1.acme_stock@v1.own.Stock_Count",
        "rpc.v1.acme_stock@v1.own.Stock_Destroy rpc.v1.acme_stock@v1.own.Stock_Destroy",
        "ctl.v1.own.connection",
      ],
    });
  });

  it("of an app are exactly these", () => {
    expect(permissionsOf(participants["an app that uses"])).toEqual({
      pub: [
        "ctl.get.notices",
        "rpc.v1.acme_stock@v1.provider.Stock_Count",
        "ctl.v1.provider.*",
        "ctl.get.notice.route.provider",
      ],
      sub: ["_INBOX.connection.>", "ctl.notice.>"],
    });
  });

  it("of those that do nothing are not empty, which would mean everything", () => {
    expect(permissionsOf(participants["a service that does nothing"])).toEqual({
      pub: [
        "ctl.get.notices",
        "_INBOX.*.r.>",
        "ctl.get.authorization.*",
        "ctl.get.grants.*",
        "ctl.get.notice.route.own",
        "health.v1.service.own.connection",
      ],
      sub: ["_INBOX.connection.>", "ctl.notice.>", "ctl.v1.own.all", "ctl.v1.own.connection"],
    });
    expect(permissionsOf(participants["an app that does nothing"])).toEqual({
      pub: ["ctl.get.notices"],
      sub: ["_INBOX.connection.>", "ctl.notice.>"],
    });
  });

  it.each(Object.entries(participants))("of %s hold nothing wide", (_, participant) => {
    const { pub, sub } = permissionsOf(participant);
    for (const list of [pub, sub]) {
      expect(list.length).toBeGreaterThan(0);
      for (const entry of list) {
        expect(entry).not.toMatch(/^[*>]/);
        expect(entry).not.toMatch(/^\$/);
        expect(entry.trim()).not.toBe("");
      }
    }
    expect(sub.some((entry) => entry.startsWith("_INBOX.*"))).toBe(false);
  });
});
