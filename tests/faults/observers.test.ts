import { rpcSubject } from "@trellis/protocol";
import { eventually } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { workService } from "./contract.ts";
import { capturing, nothingDone, plainHandlers, startWork } from "./kit.ts";

describe("only the provider answers", () => {
  it("nobody may listen beside the queue group, not even the provider's own deployment", async () => {
    const wire = capturing();
    await using working = await startWork({ service: { platform: wire.platform } });
    const { service, client } = working;
    const { deployment } = service.auth;
    const subject = rpcSubject({ api: "faults.work@v1", deployment, action: "Work.Count" });
    const refused: string[] = [];
    let heard = 0;
    const [nats] = wire.dialled;
    for (const queue of [undefined, "audit"]) {
      nats?.subscribe(subject, {
        ...(queue === undefined ? {} : { queue }),
        callback: (error) => {
          if (error === null) heard += 1;
          else refused.push(error.name);
        },
      });
    }
    await eventually(() => refused.length === 2);
    expect(refused).toEqual(["PermissionViolationError", "PermissionViolationError"]);
    for (let n = 0; n < 100; n += 1) expect((await client.rpc.work.count({ n })).orThrow().n).toBe(n);
    expect(heard).toBe(0);
  });

  it("of several replicas one handles each call", async () => {
    const dones = [nothingDone(), nothingDone(), nothingDone()];
    await using working = await startWork({ setup: (service) => void plainHandlers(service, dones[0]) });
    for (const done of dones.slice(1))
      await working.trellis.service(workService, (service) => void plainHandlers(service, done));
    for (let n = 0; n < 300; n += 1) expect((await working.client.rpc.work.count({ n })).isOk()).toBe(true);
    expect(dones.flatMap(({ begun }) => begun).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 300 }, (_, n) => n),
    );
    for (const { begun } of dones) expect(begun.length).toBeGreaterThan(50);
  });
});
