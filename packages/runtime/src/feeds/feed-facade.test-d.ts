import { defineApi, defineApp, defineError, defineService, feed, use } from "@trellis/contract";
import type { AsyncResult } from "@trellis/result";
import { Type } from "typebox";
import { describe, expectTypeOf, it } from "vitest";
import type { ConnectedClient } from "../client/trellis-client.ts";
import type { ConnectedService } from "../service/connected-service.ts";
import type { FeedErrors, FeedOpenerWithInput, FeedOpenerWithoutInput } from "./feed-stream.ts";

const Closed = defineError("Closed", { data: Type.Object({ at: Type.Integer() }) });
const live = defineApi("test.live@v1", {
  feeds: {
    "Live.Orders": feed({
      input: Type.Object({ region: Type.String() }),
      event: Type.Object({ id: Type.String() }),
      errors: [Closed],
    }),
    "Live.Ticks": feed({ event: Type.Integer() }),
  },
});
const app = defineApp("test.viewer", { uses: [use(live)] });
const narrow = defineApp("test.narrow", { uses: [use(live, { feeds: ["Live.Ticks"] })] });
const liveService = defineService("test.live-service", { implements: [live] });

declare const client: ConnectedClient<typeof app>;
declare const few: ConnectedClient<typeof narrow>;
declare const service: ConnectedService<typeof liveService>;

describe("the facade of consumers", () => {
  it("takes the input and nothing else, and gives items of the declared form", async () => {
    const stream = client.feed.live.orders({ region: "eu" }, { signal: AbortSignal.timeout(1), timeout: 5 });
    for await (const item of stream) expectTypeOf(item).toEqualTypeOf<{ id: string }>();
    for await (const tick of client.feed.live.ticks()) expectTypeOf(tick).toEqualTypeOf<number>();
    // @ts-expect-error - a wrong field is an error where it is written
    client.feed.live.orders({ regoin: "eu" });
    // @ts-expect-error - the input is not optional
    client.feed.live.orders();
    // @ts-expect-error - not selected by `use`
    few.feed.live.orders({ region: "eu" });
  });

  it("tells how it ended, exactly", () => {
    const { ended } = client.feed.live.orders({ region: "eu" });
    expectTypeOf(ended).toEqualTypeOf<AsyncResult<void, InstanceType<typeof Closed> | FeedErrors>>();
  });

  it("has short names", () => {
    expectTypeOf(client.feed.live.orders).toEqualTypeOf<
      FeedOpenerWithInput<{ region: string }, { id: string }, InstanceType<typeof Closed>>
    >();
    expectTypeOf(client.feed.live.ticks).toEqualTypeOf<FeedOpenerWithoutInput<number, never>>();
  });
});

describe("the facade of producers", () => {
  it("infers input, item and client, and checks what is emitted and returned", () => {
    service.handle.feed.live.orders(async ({ input, emit, signal, context, client: inner }) => {
      expectTypeOf(input).toEqualTypeOf<{ region: string }>();
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(context.requestId).toEqualTypeOf<string>();
      expectTypeOf(inner.feed).toEqualTypeOf<typeof service.client.feed>();
      await emit({ id: "a" });
      // @ts-expect-error - an item of another form
      await emit({ id: 1 });
    });
    service.handle.feed.live.orders(() => new Closed({ data: { at: 1 } }));
    service.handle.feed.live.ticks(({ input, emit }) => {
      expectTypeOf(input).toBeVoid();
      void emit(1);
    });
    const Other = defineError("Other");
    // @ts-expect-error - the feed does not declare this error
    service.handle.feed.live.orders(() => new Other());
  });
});
