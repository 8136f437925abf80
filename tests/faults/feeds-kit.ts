import { defineApi, defineApp, defineService, feed, rpc, use } from "@trellis/contract";
import { type ConnectedClient, TrellisClient } from "@trellis/runtime";
import { nodePlatform } from "@trellis/runtime/node";
import type { ConnectedService } from "@trellis/runtime/service";
import { Type } from "typebox";

/** The feeds on which faults are tried: numbers from 1 on, as fast as they are read or so many in a second. */
export const ticks = defineApi("faults.ticks@v1", {
  rpc: { "Ticks.Echo": rpc({ input: Type.Integer(), output: Type.Integer() }) },
  feeds: {
    "Ticks.Count": feed({
      input: Type.Object({ perSecond: Type.Optional(Type.Integer()), to: Type.Optional(Type.Integer()) }),
      event: Type.Object({ n: Type.Integer(), by: Type.String(), text: Type.String() }),
    }),
    /** One item, then nothing for as long as it is open. */
    "Ticks.Quiet": feed({ event: Type.String() }),
  },
});
export const ticksService = defineService("faults.ticks-service", { implements: [ticks] });
export const ticksApp = defineApp("faults.ticks-app", { uses: [use(ticks)] });

export type TicksService = ConnectedService<typeof ticksService>;
export type TicksClient = ConnectedClient<typeof ticksApp>;

/** What the producers of one provider did. */
export interface Produced {
  started: number;
  running: number;
  /** Items that were given, by all of them. */
  items: number;
  /** Why producers were told to end. */
  readonly reasons: string[];
}

/** Registers the producers; `by` names the instance in their items. */
export function tickProducers({ handle }: TicksService, by = "provider"): Produced {
  const produced: Produced = { started: 0, running: 0, items: 0, reasons: [] };
  const counted = async (signal: AbortSignal, produce: () => Promise<void>) => {
    produced.started += 1;
    produced.running += 1;
    try {
      await produce();
    } finally {
      produced.running -= 1;
      if (signal.aborted) produced.reasons.push(reasonOf(signal.reason));
    }
  };
  handle.rpc.ticks.echo(({ input }) => input);
  handle.feed.ticks.count(({ input, emit, signal }) =>
    counted(signal, async () => {
      const { to = Number.POSITIVE_INFINITY, perSecond } = input;
      const started = performance.now();
      for (let n = 1; n <= to; n += 1) {
        await emit({ n, by, text: "x".repeat(80) });
        produced.items += 1;
        const due = perSecond === undefined ? 0 : started + (n * 1_000) / perSecond - performance.now();
        if (due > 0) await new Promise((resolve) => setTimeout(resolve, due));
      }
    }),
  );
  handle.feed.ticks.quiet(({ emit, signal }) =>
    counted(signal, async () => {
      await emit(by);
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }),
  );
  return produced;
}

export function reasonOf(error: unknown): string {
  return typeof error === "object" && error !== null && "reason" in error
    ? String(error.reason)
    : String(error);
}

/** Reads numbers in the background and keeps account of them. */
export class Reader {
  /** The number that came last. */
  last = 0;
  /** Numbers that came out of turn: missing or repeated. */
  readonly wrong: string[] = [];
  /** What the loop threw; `undefined` while it goes on, `null` when it just ended. */
  error: unknown = undefined;
  readonly over: Promise<void>;

  constructor(stream: AsyncIterable<{ readonly n: number }>, onItem?: (n: number) => Promise<void> | void) {
    this.over = this.#read(stream, onItem);
  }

  async #read(
    stream: AsyncIterable<{ readonly n: number }>,
    onItem: ((n: number) => Promise<void> | void) | undefined,
  ): Promise<void> {
    try {
      for await (const { n } of stream) {
        if (n !== this.last + 1) this.wrong.push(`${n} after ${this.last}`);
        this.last = n;
        await onItem?.(n);
      }
      this.error = null;
    } catch (error) {
      this.error = error;
    }
  }
}

/** Dials through a proxy. */
export function through(address: string): { dial: typeof nodePlatform.dial } {
  return { dial: (options) => nodePlatform.dial({ ...options, servers: [`nats://${address}`] }) };
}

/** A client of a process of its own. */
export function connectTicks(): Promise<TicksClient> {
  return TrellisClient.connect({ participant: ticksApp, runtime: { log: false } }).orThrow();
}
