import { defineService, job } from "@trellis/contract";
import type { AsyncResult } from "@trellis/result";
import { Type } from "typebox";
import { expectTypeOf } from "vitest";
import type { JobsFacade } from "./jobs-facade.ts";

const service = defineService("acme.types", {
  jobs: {
    typed: job({
      payload: Type.Object({ a: Type.Number() }),
      result: Type.Object({ b: Type.String() }),
      update: Type.Object({ c: Type.Boolean() }),
    }),
    bare: job(),
  },
});

declare const jobs: JobsFacade<typeof service, { readonly name: "client" }>;

export async function check(): Promise<void> {
  const ref = await jobs.typed.create({ a: 1 }, { delay: "5s", priority: "high" }).orThrow();
  expectTypeOf(await ref.waitForResult().orThrow()).toEqualTypeOf<{ b: string }>();
  const updates = await ref.updates().orThrow();
  for await (const { update } of updates) expectTypeOf(update).toEqualTypeOf<{ c: boolean }>();
  jobs.typed.handle(({ job: each, client }) => {
    expectTypeOf(each.payload).toEqualTypeOf<{ a: number }>();
    expectTypeOf(client.name).toEqualTypeOf<"client">();
    expectTypeOf(each.heartbeat()).toExtend<AsyncResult<void, unknown>>();
    void each.emitUpdate({ c: true });
    // @ts-expect-error an update that does not fit
    void each.emitUpdate({ c: 1 });
    return { b: "x" };
  });
  // @ts-expect-error a payload that does not fit
  void jobs.typed.create({ a: "x" });
  // @ts-expect-error a result that does not fit
  jobs.typed.handle(() => ({ b: 1 }));
  // @ts-expect-error no such priority
  void jobs.typed.create({ a: 1 }, { priority: "urgent" });
  jobs.bare.handle(() => {});
  void jobs.bare.create();
}
