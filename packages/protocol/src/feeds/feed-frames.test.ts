import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeControlFrame } from "../frames/control.ts";
import { decodeReplyFrame } from "../frames/reply.ts";
import { decodeRequestFrame } from "../frames/request.ts";
import { portablePort as port } from "../port/portable.ts";
import { decodeFeedChallenge, encodeFeedChallenge, verifyFeedChallenge } from "./feed-challenge.ts";
import {
  decodeFeedControl,
  encodeFeedControl,
  FEED_NOTE_KINDS,
  type FeedNote,
  verifyFeedControl,
} from "./feed-control.ts";
import { FEED_END_REASONS } from "./feed-end.ts";
import { decodeFeedFrame, encodeFeedEnd, encodeFeedItems, verifyFeedFrame } from "./feed-frame.ts";
import { deriveFeedKey } from "./feed-key.ts";
import { readFeedOpening } from "./feed-opening.ts";

const key = port.macKey(new Uint8Array(32).fill(9));
const subject = "_INBOX.con1.r.s1";
const control = "ctl.v1.dep1.con2";
const header = { epoch: 7, digest: new Uint8Array(32).fill(0xab), counter: 1, issuedAt: 1_764_540_000_000 };
const id = fc.uint8Array({ minLength: 16, maxLength: 16 });
const sequence = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
const text = fc.string({ unit: "binary", maxLength: 60 });
const note: fc.Arbitrary<FeedNote> = fc
  .record({
    session: id,
    kind: fc.constantFrom(...FEED_NOTE_KINDS),
    nonce: fc.integer({ min: 1, max: 2 ** 48 - 1 }),
    a: fc.nat(),
    b: fc.nat(),
  })
  .map(({ a, b, nonce, ...rest }) => ({
    ...rest,
    nonce: rest.kind === "answer" ? nonce : 0,
    received: a + b,
    consumed: a,
  }));

const frames = fc.oneof(
  fc
    .record({ session: id, sequence, payload: text })
    .map((made) => encodeFeedItems(port, { ...made, subject, key })),
  fc
    .record({ session: id, sequence, payload: text, reason: fc.constantFrom(...FEED_END_REASONS) })
    .map((made) => encodeFeedEnd(port, { ...made, subject, key })),
  fc
    .record({ sessions: fc.array(id, { minLength: 1, maxLength: 4 }), nonce: fc.nat() })
    .map((made) => encodeFeedChallenge(port, { ...made, kind: "challenge", epoch: 7, subject, key })),
  fc
    .array(note, { minLength: 1, maxLength: 4 })
    .map((notes) => encodeFeedControl(port, { header, notes, subject: control, reply: subject, key })),
);

/** Whether a receiver of either side would act on these bytes. */
function isTrusted(bytes: Uint8Array): boolean {
  const frame = decodeFeedFrame(port, bytes);
  if (frame !== undefined) return verifyFeedFrame(port, { frame, subject, key });
  const asked = decodeFeedChallenge(port, bytes);
  if (asked !== undefined) return verifyFeedChallenge(port, { frame: asked, subject, key });
  const said = decodeFeedControl(port, bytes);
  return (
    said !== undefined && verifyFeedControl(port, { frame: said, subject: control, reply: subject, key })
  );
}

describe("frames of feeds", () => {
  it("come back as they were", () => {
    fc.assert(
      fc.property(id, sequence, text, (session, number, payload) => {
        const bytes = encodeFeedItems(port, { session, sequence: number, payload, subject, key });
        const frame = decodeFeedFrame(port, bytes);
        expect(frame).toMatchObject({ kind: "items", sequence: number, session });
        expect(frame && port.utf8.read(frame.payload, 0, frame.payload.length)).toBe(payload);
      }),
    );
    fc.assert(
      fc.property(fc.array(note, { minLength: 1, maxLength: 20 }), (notes) => {
        const bytes = encodeFeedControl(port, { header, notes, subject: control, reply: "", key });
        expect(decodeFeedControl(port, bytes)?.notes).toEqual(notes);
      }),
    );
  });

  it("are trusted as they are, and not with any bit changed, anything added or anything missing", () => {
    fc.assert(
      fc.property(frames, fc.nat(), fc.integer({ min: 0, max: 7 }), (bytes, place, bit) => {
        expect(isTrusted(bytes)).toBe(true);
        const changed = bytes.slice();
        const at = place % bytes.length;
        changed[at] = (changed[at] ?? 0) ^ (1 << bit);
        expect(isTrusted(changed)).toBe(false);
        expect(isTrusted(Uint8Array.from([...bytes, 0]))).toBe(false);
        expect(isTrusted(bytes.slice(0, -1))).toBe(false);
      }),
      { numRuns: 500 },
    );
  });

  it("are never taken for frames of RPC, nor those for them", () => {
    fc.assert(
      fc.property(frames, (bytes) => {
        expect(decodeRequestFrame(port, bytes)).toBeUndefined();
        expect(decodeReplyFrame(port, bytes)).toBeUndefined();
        expect(decodeControlFrame(port, bytes)).toBeUndefined();
      }),
    );
  });

  it("are decoded from any bytes without a throw", () => {
    const kinds = fc.constantFrom(3, 16, 17, 18, 19);
    fc.assert(
      fc.property(kinds, fc.uint8Array({ maxLength: 300 }), (kind, rest) => {
        const bytes = Uint8Array.from([1, kind, ...rest]);
        expect(isTrusted(bytes)).toBe(false);
      }),
      { numRuns: 2_000 },
    );
  });

  it("refuse wrong counts and ids of the own side loudly", () => {
    const session = new Uint8Array(15);
    const place = { session, sequence: 1, subject, key, payload: "[]" };
    expect(() => encodeFeedItems(port, place)).toThrow(RangeError);
    expect(() => deriveFeedKey(port, { replyKey: key, connection: "c", subject, session })).toThrow(
      RangeError,
    );
    const none = { kind: "challenge" as const, epoch: 1, nonce: 1, sessions: [], subject, key };
    expect(() => encodeFeedChallenge(port, none)).toThrow(RangeError);
    expect(() => encodeFeedControl(port, { header, notes: [], subject, reply: "", key })).toThrow(RangeError);
  });
});

describe("what opens a feed", () => {
  it("is read only in its exact form", () => {
    expect(readFeedOpening({ input: null, frames: "x" })).toEqual({ input: null, frames: "x" });
    for (const wrong of [null, 1, "x", [], {}, { input: 1 }, { frames: "x" }, { input: 1, frames: 2 }])
      expect(readFeedOpening(wrong)).toBeUndefined();
    expect(readFeedOpening({ input: 1, frames: "x", more: 1 })).toBeUndefined();
    expect(readFeedOpening({ input: 1, frames: "x".repeat(513) })).toBeUndefined();
  });
});
