import { defineService, kv, store } from "@trellis/contract";
import { Type } from "typebox";

/** A service with a bucket and a store; tests run it in several processes at once. */
export const dataService = defineService("faults.data", {
  kv: { counters: kv({ value: Type.Object({ n: Type.Integer() }) }) },
  store: { blobs: store({}) },
});
