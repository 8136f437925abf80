import { defineApi, defineApp, defineService, feed, use } from "@trellis/contract";
import { Type } from "typebox";

const Item = Type.Object({
  id: Type.String(),
  name: Type.String(),
  qty: Type.Integer(),
  tags: Type.Array(Type.String()),
  note: Type.String(),
});

export const stream = defineApi("bench.stream@v1", {
  feeds: {
    "Stream.Items": feed({ input: Type.Object({ count: Type.Integer() }), event: Item }),
    /** One item, then nothing. */
    "Stream.Quiet": feed({ event: Type.Integer() }),
  },
});

export const streamService = defineService("bench.stream-service", { implements: [stream] });
export const streamApp = defineApp("bench.stream-app", { uses: [use(stream)] });
