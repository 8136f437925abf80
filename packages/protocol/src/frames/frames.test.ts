import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fromHex } from "../bytes/hex.ts";
import { portablePort as port } from "../port/portable.ts";
import { decodeControlFrame, encodeControlFrame, verifyControlFrame } from "./control.ts";
import {
  decodeReplyFrame,
  encodeRefusal,
  encodeReplyFrame,
  type ResultItem,
  verifyReplyFrame,
} from "./reply.ts";
import {
  type CallItem,
  decodeRequestFrame,
  encodeRequestFrame,
  readRequestHeader,
  verifyRequestFrame,
} from "./request.ts";

const subject = "rpc.v1.acme_orders@v1.dep1.Orders_Create";
const reply = "_INBOX.con1.r.1";
const key = port.macKey(new Uint8Array(32).fill(9));
const digest = new Uint8Array(32).fill(0xab);
const header = { epoch: 7, digest, counter: 1, issuedAt: 1_764_540_000_000 };
const idOf = (byte: number): Uint8Array => new Uint8Array(16).fill(byte);
const textOf = (bytes: Uint8Array): string => port.utf8.read(bytes, 0, bytes.length);

const request = (calls: readonly CallItem[]): Uint8Array =>
  encodeRequestFrame(port, { header, calls, subject, reply, key });
const answer = (results: readonly ResultItem[]): Uint8Array =>
  encodeReplyFrame(port, { epoch: 7, results, reply, key });
const cancel = (requestIds: readonly Uint8Array[]): Uint8Array =>
  encodeControlFrame(port, { kind: "cancel", header, requestIds, subject, reply: "", key });

const bytes16 = fc.uint8Array({ minLength: 16, maxLength: 16 });
const wellFormed = fc.string({ unit: "binary", maxLength: 60 });
const call: fc.Arbitrary<CallItem> = fc
  .record({
    requestId: bytes16,
    remainingMs: fc.nat(0xffff_ffff),
    payload: wellFormed,
    trace: fc.option(fc.uint8Array({ minLength: 25, maxLength: 25 }), { nil: undefined }),
    tracestate: fc.option(fc.stringMatching(/^[ -~]{1,80}$/), { nil: undefined }),
    origin: fc.option(bytes16, { nil: undefined }),
  })
  // A state is carried only with its trace.
  .map((made) => ({ ...made, tracestate: made.trace === undefined ? undefined : made.tracestate }));

/** Whether a receiver would act on these bytes. */
function isTrusted(bytes: Uint8Array): boolean {
  const asked = decodeRequestFrame(port, bytes);
  if (asked !== undefined && verifyRequestFrame(port, { frame: asked, subject, reply, key })) return true;
  const answered = decodeReplyFrame(port, bytes);
  if (answered?.kind === "results" && verifyReplyFrame(port, { frame: answered, reply, key })) return true;
  const control = decodeControlFrame(port, bytes);
  return control !== undefined && verifyControlFrame(port, { frame: control, subject, reply: "", key });
}

describe("request frames", () => {
  it("give back what was put in", () => {
    fc.assert(
      fc.property(
        fc.array(call, { minLength: 1, maxLength: 64 }),
        fc.nat(Number.MAX_SAFE_INTEGER),
        fc.nat(0xffff_ffff),
        (calls, counter, epoch) => {
          const sent = { epoch, digest, counter, issuedAt: header.issuedAt };
          const bytes = encodeRequestFrame(port, { header: sent, calls, subject, reply, key });
          const frame = decodeRequestFrame(port, bytes);
          if (frame === undefined) throw new Error("not decoded");
          expect(verifyRequestFrame(port, { frame, subject, reply, key })).toBe(true);
          expect(frame).toMatchObject({ epoch, counter, issuedAt: header.issuedAt });
          expect(frame.digestText).toBe("q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s");
          expect(frame.calls.map((got) => ({ ...got, payload: textOf(got.payload) }))).toEqual(calls);
        },
      ),
    );
  });

  it("are read without a copy", () => {
    const bytes = request([{ requestId: idOf(1), remainingMs: 1, payload: "null" }]);
    const frame = decodeRequestFrame(port, bytes);
    expect(frame?.calls[0]?.payload.buffer).toBe(bytes.buffer);
    expect(frame?.digest.buffer).toBe(bytes.buffer);
  });

  it("show their header before their calls are looked at", () => {
    const bytes = request([{ requestId: idOf(1), remainingMs: 1, payload: "null" }]);
    // A call that claims to be longer than the frame: the header is fine, the frame is not.
    bytes[54 + 21] = 0xff;
    expect(readRequestHeader(bytes)).toMatchObject({ epoch: 7, counter: 1 });
    expect(decodeRequestFrame(port, bytes)).toBeUndefined();
  });

  it("hold 1 to 64 calls", () => {
    const one = { requestId: idOf(1), remainingMs: 1, payload: "null" };
    expect(() => request([])).toThrow(RangeError);
    expect(() => request(Array.from({ length: 65 }, () => one))).toThrow(RangeError);
    expect(decodeRequestFrame(port, request(Array.from({ length: 64 }, () => one)))?.calls).toHaveLength(64);
  });

  it("are refused with more than 64 calls, whoever made them", () => {
    const body = request(
      Array.from({ length: 64 }, () => ({ requestId: idOf(1), remainingMs: 1, payload: "" })),
    );
    const longer = new Uint8Array(body.length + 25);
    longer.set(body.subarray(0, body.length - 32));
    expect(decodeRequestFrame(port, longer)).toBeUndefined();
  });

  it("clamp the remaining time and leave out a state that they cannot carry", () => {
    const trace = new Uint8Array(25);
    const frame = decodeRequestFrame(
      port,
      request([
        {
          requestId: idOf(1),
          remainingMs: Number.POSITIVE_INFINITY,
          payload: "",
          trace,
          tracestate: "a=1\r\nEvil: 1",
        },
        { requestId: idOf(2), remainingMs: -5, payload: "", tracestate: "a=1" },
        { requestId: idOf(3), remainingMs: 1.9, payload: "", trace, tracestate: "x".repeat(513) },
        { requestId: idOf(4), remainingMs: 1, payload: "", trace, tracestate: "é" },
      ]),
    );
    expect(frame?.calls.map(({ remainingMs }) => remainingMs)).toEqual([0xffff_ffff, 0, 1, 1]);
    expect(frame?.calls.map(({ tracestate }) => tracestate)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it("refuse ids, digests and traces of a wrong length", () => {
    expect(() => request([{ requestId: idOf(1).subarray(1), remainingMs: 1, payload: "" }])).toThrow(
      RangeError,
    );
    expect(() =>
      request([{ requestId: idOf(1), remainingMs: 1, payload: "", trace: new Uint8Array(24) }]),
    ).toThrow(RangeError);
    expect(() =>
      request([{ requestId: idOf(1), remainingMs: 1, payload: "", origin: new Uint8Array(15) }]),
    ).toThrow(RangeError);
    const short = { ...header, digest: digest.subarray(1) };
    const calls = [{ requestId: idOf(1), remainingMs: 1, payload: "" }];
    expect(() => encodeRequestFrame(port, { header: short, calls, subject, reply, key })).toThrow(RangeError);
  });

  it("count only for their subject, reply subject and key", () => {
    const frame = decodeRequestFrame(port, request([{ requestId: idOf(1), remainingMs: 1, payload: "1" }]));
    if (frame === undefined) throw new Error("not decoded");
    const other = port.macKey(new Uint8Array(32));
    expect(verifyRequestFrame(port, { frame, subject, reply, key })).toBe(true);
    expect(verifyRequestFrame(port, { frame, subject: `${subject}x`, reply, key })).toBe(false);
    expect(verifyRequestFrame(port, { frame, subject, reply: "_INBOX.con2.r.1", key })).toBe(false);
    expect(verifyRequestFrame(port, { frame, subject: `${subject}${reply}`, reply: "", key })).toBe(false);
    expect(verifyRequestFrame(port, { frame, subject, reply, key: other })).toBe(false);
  });

  it("take subjects of any length and script", () => {
    for (const place of ["x".repeat(127), "x".repeat(128), "x".repeat(5_000), "é", ""]) {
      const calls = [{ requestId: idOf(1), remainingMs: 1, payload: "1" }];
      const bytes = encodeRequestFrame(port, { header, calls, subject: place, reply, key });
      const frame = decodeRequestFrame(port, bytes);
      if (frame === undefined) throw new Error("not decoded");
      expect(verifyRequestFrame(port, { frame, subject: place, reply, key })).toBe(true);
      expect(verifyRequestFrame(port, { frame, subject: `${place}!`, reply, key })).toBe(false);
    }
  });
});

describe("reply frames", () => {
  const results = fc.array(
    fc.record({
      requestId: bytes16,
      status: fc.constantFrom(0 as const, 1 as const, 2 as const),
      payload: wellFormed,
    }),
    { minLength: 1, maxLength: 64 },
  );

  it("give back what was put in", () => {
    fc.assert(
      fc.property(results, fc.nat(0xffff_ffff), (items, epoch) => {
        const frame = decodeReplyFrame(port, encodeReplyFrame(port, { epoch, results: items, reply, key }));
        if (frame?.kind !== "results") throw new Error("not decoded");
        expect(verifyReplyFrame(port, { frame, reply, key })).toBe(true);
        expect(verifyReplyFrame(port, { frame, reply: `${reply}0`, key })).toBe(false);
        expect(frame.epoch).toBe(epoch);
        expect(frame.results.map((got) => ({ ...got, payload: textOf(got.payload) }))).toEqual(items);
      }),
    );
  });

  it("keep a payload that looks like an error a payload: the status decides", () => {
    const payload = JSON.stringify({ id: "x", kind: "call", type: "AuthError", message: "no" });
    const frame = decodeReplyFrame(port, answer([{ requestId: idOf(1), status: 0, payload }]));
    expect(frame?.kind === "results" && frame.results[0]?.status).toBe(0);
  });

  it("are told from refusals, which carry no authority", () => {
    for (const code of ["unknown-authorization", "stale-epoch", "malformed"] as const) {
      expect(decodeReplyFrame(port, encodeRefusal(code))).toEqual({ kind: "refusal", code });
    }
    expect(decodeReplyFrame(port, Uint8Array.of(1, 1, 0))).toBeUndefined();
    expect(decodeReplyFrame(port, Uint8Array.of(1, 1, 1, 0))).toBeUndefined();
  });

  it("hold 1 to 64 results with proper ids", () => {
    const one: ResultItem = { requestId: idOf(1), status: 0, payload: "" };
    expect(() => answer([])).toThrow(RangeError);
    expect(() => answer(Array.from({ length: 65 }, () => one))).toThrow(RangeError);
    expect(() => answer([{ ...one, requestId: idOf(1).subarray(1) }])).toThrow(RangeError);
  });
});

describe("control frames", () => {
  it("give back what was put in", () => {
    fc.assert(
      fc.property(
        fc.array(bytes16, { minLength: 1, maxLength: 40 }),
        fc.constantFrom("cancel" as const, "ping" as const),
        (requestIds, kind) => {
          const bytes = encodeControlFrame(port, { kind, header, requestIds, subject, reply, key });
          const frame = decodeControlFrame(port, bytes);
          if (frame === undefined) throw new Error("not decoded");
          expect(frame).toMatchObject({ kind, epoch: 7, counter: 1 });
          expect(frame.requestIds).toEqual(requestIds);
          expect(verifyControlFrame(port, { frame, subject, reply, key })).toBe(true);
          expect(verifyControlFrame(port, { frame, subject, reply: "", key })).toBe(false);
        },
      ),
    );
  });

  it("name 1 to 1024 requests", () => {
    expect(() => cancel([])).toThrow(RangeError);
    expect(() => cancel(Array.from({ length: 1025 }, () => idOf(1)))).toThrow(RangeError);
    expect(() => cancel([idOf(1).subarray(1)])).toThrow(RangeError);
    expect(
      decodeControlFrame(port, cancel(Array.from({ length: 1024 }, () => idOf(1))))?.requestIds,
    ).toHaveLength(1024);
  });

  it("are no request frames, nor the other way round, even with a right MAC of the other kind", () => {
    expect(decodeRequestFrame(port, cancel([idOf(1)]))).toBeUndefined();
    expect(
      decodeControlFrame(port, request([{ requestId: idOf(1), remainingMs: 1, payload: "" }])),
    ).toBeUndefined();
    const frame = decodeControlFrame(port, cancel([idOf(1)]));
    if (frame === undefined) throw new Error("not decoded");
    expect(verifyRequestFrame(port, { frame, subject, reply: "", key })).toBe(false);
  });
});

describe("decoding", () => {
  const samples = [
    request([
      { requestId: idOf(1), remainingMs: 30_000, payload: '{"sku":"a"}' },
      {
        requestId: idOf(2),
        remainingMs: 1,
        payload: "null",
        trace: new Uint8Array(25).fill(5),
        tracestate: "a=1",
        origin: idOf(1),
      },
    ]),
    answer([
      { requestId: idOf(1), status: 0, payload: '{"id":"x"}' },
      { requestId: idOf(2), status: 1, payload: "{}" },
    ]),
    cancel([idOf(1), idOf(2)]),
  ];

  it("is total: 10 000 random buffers give a frame or nothing", () => {
    const looksLike = fc
      .tuple(fc.constantFrom(...samples), fc.nat(120), fc.uint8Array({ maxLength: 200 }))
      .map(([sample, keep, rest]) => Uint8Array.from([...sample.subarray(0, keep), ...rest]));
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), looksLike), (bytes) => {
        decodeRequestFrame(port, bytes);
        decodeReplyFrame(port, bytes);
        decodeControlFrame(port, bytes);
        readRequestHeader(bytes);
      }),
      { numRuns: 10_000 },
    );
  });

  it("trusts no frame in which one byte was changed", () => {
    for (const sample of samples) {
      expect(isTrusted(sample)).toBe(true);
      for (let at = 0; at < sample.length; at += 1) {
        for (const flip of [1, 0x80, 0xff]) {
          const changed = Uint8Array.from(sample);
          changed[at] = (changed[at] ?? 0) ^ flip;
          expect(isTrusted(changed), `byte ${at}`).toBe(false);
        }
      }
    }
  });

  it("trusts no frame that was cut, lengthened or spliced", () => {
    for (const sample of samples) {
      for (let length = 0; length < sample.length; length += 1) {
        expect(isTrusted(sample.subarray(0, length))).toBe(false);
      }
      expect(isTrusted(Uint8Array.from([...sample, 0]))).toBe(false);
    }
  });

  it("refuses counters that a number cannot hold", () => {
    const [sample = new Uint8Array()] = samples;
    const huge = Uint8Array.from(sample);
    huge.set(fromHex("0020000000000000") ?? [], 38);
    expect(decodeRequestFrame(port, huge)).toBeUndefined();
    huge.set(fromHex("001fffffffffffff") ?? [], 38);
    expect(decodeRequestFrame(port, huge)?.counter).toBe(Number.MAX_SAFE_INTEGER);
  });
});
