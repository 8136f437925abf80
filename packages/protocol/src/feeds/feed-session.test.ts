import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FeedNote, FeedNoteKind } from "./feed-control.ts";
import { FeedReceiver } from "./feed-receiver.ts";
import { FeedSender } from "./feed-sender.ts";
import { FEED_WINDOW } from "./feed-window.ts";

/** What happens to the next message of a direction. */
type Fate = "arrives" | "lost" | "twice";

type Step =
  | { readonly kind: "emit"; readonly items: number; readonly bytes: number }
  | { readonly kind: "take"; readonly count: number }
  | { readonly kind: "down" | "up"; readonly fate: Fate }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "end" | "leave" };

const fate = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Fate>("arrives") },
  fc.constantFrom<Fate>("lost", "twice"),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("emit" as const),
      items: fc.integer({ min: 0, max: 3 }),
      bytes: fc.oneof(fc.integer({ min: 58, max: 4_000 }), fc.integer({ min: 200_000, max: 1_100_000 })),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("take" as const), count: fc.integer({ min: 1, max: 40 }) }),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constantFrom("down" as const, "up" as const), fate }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 3_000 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("end" as const) }) },
);

interface Sent {
  readonly sequence: number;
  readonly items: number;
  readonly bytes: Uint8Array;
  readonly last: boolean;
}

/** The two machines, and a network that loses and repeats; it does not reorder, and neither does NATS. */
class World {
  now = 0;
  readonly sender: FeedSender;
  readonly receiver = new FeedReceiver(0);
  readonly down: (Sent | { readonly nonce: number })[] = [];
  readonly up: FeedNote[] = [];
  readonly sent = new Map<Uint8Array, Sent>();
  /** Sequences that the consumer took, and items that wait there. */
  readonly taken: number[] = [];
  waiting = 0;
  starts = 0;
  overs = 0;
  ends = 0;
  left = false;
  #nonce = 1;

  constructor() {
    this.sender = new FeedSender(1, 0);
    this.down.push({ nonce: 1 });
  }

  emit(items: number, bytes: number): void {
    if (!this.sender.allows(bytes, this.now)) return;
    this.#send({ items, bytes: new Uint8Array(bytes), last: false });
    expect(this.sender.unconsumed).toBeLessThanOrEqual(FEED_WINDOW.frames);
    if (this.sender.unconsumed > 1)
      expect(this.sender.unconsumedBytes).toBeLessThanOrEqual(FEED_WINDOW.bytes);
  }

  end(): void {
    if (this.sender.phase === "open") this.#send({ items: 0, bytes: new Uint8Array(59), last: true });
  }

  #send({ items, bytes, last }: Omit<Sent, "sequence">): void {
    const frame = { sequence: this.sender.sent + 1, items, bytes, last };
    if (last) this.sender.end(bytes);
    else this.sender.add(bytes);
    this.sent.set(bytes, frame);
    this.down.push(frame);
  }

  take(count: number): void {
    for (let index = 0; index < count && this.waiting > 0; index += 1) {
      this.waiting -= 1;
      if (this.receiver.handed()) this.say("state");
    }
  }

  leave(): void {
    if (this.left) return;
    this.left = true;
    this.say("close");
  }

  say(kind: FeedNoteKind, nonce = 0): void {
    this.up.push({ session: new Uint8Array(16), kind, nonce, ...this.receiver.report() });
  }

  /** Delivers, loses or repeats the oldest message to the consumer. */
  moveDown(fate: Fate): void {
    const message = this.down.shift();
    if (message === undefined || fate === "lost") return;
    for (let times = fate === "twice" ? 2 : 1; times > 0; times -= 1) {
      if ("nonce" in message) {
        this.receiver.heard(this.now);
        if (this.left || this.ends > 0) this.say("close");
        else this.say("answer", message.nonce);
      } else if (!this.left && this.ends === 0) this.#onFrame(message);
    }
  }

  #onFrame({ sequence, items, bytes, last }: Sent): void {
    const verdict = last
      ? this.receiver.onEnd(sequence, this.now)
      : this.receiver.onItems(sequence, bytes.length, this.now);
    expect(verdict).not.toBe("overrun");
    if (verdict === "resume") this.say("resume");
    if (verdict !== "take") return;
    this.taken.push(sequence);
    if (last) {
      this.receiver.tookEnd();
      this.ends += 1;
      return this.say("close");
    }
    this.waiting += items;
    if (this.receiver.took(items, bytes.length)) this.say("state");
  }

  moveUp(fate: Fate): void {
    const note = this.up.shift();
    if (note === undefined || fate === "lost") return;
    for (let times = fate === "twice" ? 2 : 1; times > 0; times -= 1) {
      const decision = this.sender.onNote(note, this.now);
      if (decision.start) this.starts += 1;
      if (decision.over) this.overs += 1;
      for (const bytes of decision.resend) {
        const again = this.sent.get(bytes);
        if (again !== undefined) this.down.push(again);
      }
      if (decision.ask) this.ask();
    }
  }

  ask(): void {
    this.#nonce += 1;
    this.sender.asked(this.#nonce, this.now);
    this.down.push({ nonce: this.#nonce });
  }

  /** The look at the clock of both sides. */
  wait(ms: number): void {
    this.now += ms;
    if (this.sender.due(this.now) === "ask") this.ask();
    if (this.left || this.ends > 0) return;
    const due = this.receiver.due(this.now);
    if (due === "report") this.say("state");
    if (due === "ask") this.say("resume");
  }

  run(what: Step): void {
    switch (what.kind) {
      case "emit":
        return this.emit(what.items, what.bytes);
      case "take":
        return this.take(what.count);
      case "down":
        return this.moveDown(what.fate);
      case "up":
        return this.moveUp(what.fate);
      case "wait":
        return this.wait(what.ms);
      case "end":
        return this.end();
      case "leave":
        return this.leave();
    }
  }

  /** The network is well again and the application reads: for a while. */
  heal(): void {
    for (let round = 0; round < 60; round += 1) {
      while (this.down.length > 0) this.moveDown("arrives");
      while (this.up.length > 0) this.moveUp("arrives");
      this.take(1_000);
      this.wait(500);
    }
  }
}

/** Opened, and the path proven. */
function opened(): World {
  const world = new World();
  world.moveDown("arrives");
  world.moveUp("arrives");
  return world;
}

describe("a session over a network that loses and repeats", () => {
  it("never exceeds the window, loses nothing, doubles nothing, and ends once", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const world = opened();
        for (const what of steps) world.run(what);
        // Whatever became of it: either it was given up, or all of it arrives.
        if (world.sender.due(world.now) === "lost" || world.receiver.due(world.now) === "lost") return;
        world.heal();
        if (world.sender.phase === "open") world.end();
        world.heal();
        const all = Array.from({ length: world.sender.sent }, (_, index) => index + 1);
        expect(world.taken).toEqual(all);
        expect(world.waiting).toBe(0);
        expect([world.starts, world.ends, world.overs]).toEqual([1, 1, 1]);
        expect(world.sender.unconsumedBytes).toBe(0);
      }),
      { numRuns: 400 },
    );
  });

  it("is over at the provider once, whenever the consumer leaves", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), fc.array(step, { maxLength: 40 }), (before, after) => {
        const world = opened();
        for (const what of before) world.run(what);
        world.leave();
        for (const what of after) world.run(what);
        for (let round = 0; round < 40 && world.sender.phase !== "over"; round += 1) {
          while (world.down.length > 0) world.moveDown("arrives");
          while (world.up.length > 0) world.moveUp("arrives");
          world.wait(1_000);
          if (world.sender.due(world.now) === "lost") world.overs += world.sender.drop() ? 1 : 0;
        }
        expect(world.sender.phase).toBe("over");
        expect(world.overs).toBe(1);
        expect(world.sender.unconsumedBytes).toBe(0);
      }),
      { numRuns: 300 },
    );
  });

  it("starts its producer at most once, whatever arrives", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fate, fate), { maxLength: 30 }), (fates) => {
        const world = new World();
        for (const [down, up] of fates) {
          world.moveDown(down);
          world.moveUp(up);
          world.wait(400);
        }
        expect(world.starts).toBeLessThanOrEqual(1);
        expect(world.starts === 1).toBe(world.sender.phase === "open");
      }),
    );
  });
});

describe("a consumer with a full window", () => {
  /** A window of frames with so many items each, all arrived. */
  function full(items: number): World {
    const world = opened();
    for (let frame = 0; frame <= FEED_WINDOW.frames; frame += 1) world.emit(items, 1_000);
    while (world.down.length > 0) world.moveDown("arrives");
    return world;
  }

  function pass(world: World, ms: number): string | undefined {
    for (let at = 0; at < ms; at += 1_000) {
      world.wait(1_000);
      while (world.down.length > 0) world.moveDown("arrives");
      while (world.up.length > 0) world.moveUp("arrives");
    }
    return world.sender.due(world.now);
  }

  it("that takes nothing has stalled", () => {
    expect(pass(full(256), 31_000)).toBe("stalled");
  });

  it("that takes one item now and then has not, however long a frame lasts it", () => {
    const world = full(256);
    for (let item = 0; item < 20; item += 1) {
      world.take(1);
      expect(pass(world, 25_000)).not.toBe("stalled");
    }
    expect(pass(world, 31_000)).toBe("stalled");
  });
});

describe("time in which nothing could be heard", () => {
  it("does not count", () => {
    const { sender, receiver } = opened();
    sender.excuse(60_000);
    receiver.excuse(60_000);
    expect(sender.due(69_000)).toBeUndefined();
    expect(receiver.due(74_000)).toBeUndefined();
    expect(sender.due(89_000)).toBe("lost");
    expect(receiver.due(86_000)).toBe("lost");
  });
});
