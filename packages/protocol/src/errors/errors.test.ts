import { defineError } from "@trellis/contract";
import { BaseError, UnexpectedError } from "@trellis/result";
import fc from "fast-check";
import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import { JobNotEnqueuedError } from "../jobs/job-not-enqueued-error.ts";
import { encodeJson } from "../json/encode.ts";
import { AuthError } from "./auth-error.ts";
import { CallError } from "./call-error.ts";
import { decodeError } from "./decode-error.ts";
import { encodeError, encodeErrorText } from "./encode-error.ts";
import { ConflictError, NotFoundError, UnavailableError } from "./presence-errors.ts";
import { RemoteError } from "./remote-error.ts";
import { BusyError, CancelledError, TimeoutError } from "./timing-errors.ts";
import { TransportError } from "./transport-error.ts";
import type { TrellisError } from "./trellis-error.ts";
import { ValidationError } from "./validation-error.ts";

const OutOfStock = defineError("OutOfStock", { data: Type.Object({ sku: Type.String() }) });
const Closed = defineError("Closed");
const declared = { OutOfStock, Closed };
const SECRET = "hunter2";

/** As it comes out at the other side. */
const sent = (error: BaseError): TrellisError => decodeError(JSON.parse(encodeErrorText(error)), declared);

describe("errors of ours", () => {
  const all: readonly BaseError[] = [
    new ValidationError({ errors: [{ path: "/a", message: "must be a string" }] }),
    new AuthError({ reason: "revoked" }),
    new TransportError({ code: "trellis.runtime.connect_failed" }),
    new TimeoutError({ timeoutMs: 5 }),
    new TimeoutError(),
    new CancelledError({ reason: "stopped" }),
    new BusyError({ retryAfterMs: 20 }),
    new UnavailableError({ reason: "provider_lost" }),
    new NotFoundError({ details: { order: "7" } }),
    new JobNotEnqueuedError({
      reason: "active-limit",
      key: '["a"]',
      active: 1,
      queued: 0,
      limit: 1,
      existingJobId: "j1",
    }),
    new ConflictError({ message: "Another owner" }),
    new RemoteError({ remoteType: "KVError" }),
    new UnexpectedError(),
  ];

  it.each(all.map((error) => [error.type, error] as const))("%s comes out as it went in", (_type, error) => {
    const got = sent(error);
    expect(got).toBeInstanceOf(error.constructor);
    expect(got.id).toBe(error.id);
    expect(got.type).toBe(error.type);
    expect(got.details ?? {}).toEqual(error.details ?? {});
    if (error.type !== "TransportError") expect(got.message).toBe(error.message);
  });

  it("have their own fields back", () => {
    expect(sent(new BusyError({ retryAfterMs: 20 }))).toMatchObject({ retryAfterMs: 20 });
    expect(sent(new TimeoutError({ timeoutMs: 5 }))).toMatchObject({ timeoutMs: 5 });
    expect(sent(new AuthError({ reason: "revoked", traceId: "t" }))).toMatchObject({
      reason: "revoked",
      traceId: "t",
    });
    const errors = [{ path: "", message: "is wrong" }];
    expect(sent(new ValidationError({ errors }))).toMatchObject({ errors });
  });

  it("say something good by themselves", () => {
    for (const error of all) expect(error.message).toMatch(/^[A-Z][a-z]/);
    expect(new ValidationError({ errors: [] }).message).toBe("The value is not valid");
    expect(new UnavailableError({ reason: "some_newer" }).message).toBe("Unavailable: some newer");
  });

  it("are known by brand: also those of another copy of the package", () => {
    class Foreign extends BaseError {
      readonly kind = "call";
      readonly type = "BusyError";
    }
    const foreign = new Foreign("busy");
    expect(foreign).toBeInstanceOf(BusyError);
    expect(foreign).toBeInstanceOf(CallError);
    expect(foreign).not.toBeInstanceOf(AuthError);
    expect(new BusyError({ retryAfterMs: 1 })).not.toBeInstanceOf(class Mine extends BusyError {});
    expect(new OutOfStock({ data: { sku: "a" } })).not.toBeInstanceOf(CallError);
    for (const value of [null, undefined, 1, {}, new Error("x")]) expect(value).not.toBeInstanceOf(BusyError);
  });
});

describe("declared errors", () => {
  it("come out as the same class with typed data", () => {
    const error = new OutOfStock({ data: { sku: "a" }, message: "None left" });
    const got = sent(error);
    expect(got).toBeInstanceOf(OutOfStock);
    expect(got).toMatchObject({ id: error.id, data: { sku: "a" }, message: "None left", kind: "declared" });
    expect(sent(new Closed())).toBeInstanceOf(Closed);
  });

  it("that this side does not know, or whose data does not fit, are remote errors", () => {
    const envelope = { id: "1", kind: "declared", type: "OutOfStock", message: "m" };
    for (const [given, known] of [
      [{ ...envelope, data: { sku: 1 } }, declared],
      [envelope, declared],
      [{ ...envelope, data: { sku: "a" } }, {}],
      [{ ...envelope, type: "Closed", data: 1 }, declared],
      [{ ...envelope, type: "__proto__" }, declared],
      [{ ...envelope, type: "toString" }, declared],
      [{ ...envelope, kind: "other", data: { sku: "a" } }, declared],
    ] as const) {
      const got = decodeError(given, known);
      expect(got).toBeInstanceOf(RemoteError);
      expect(got).toMatchObject({ id: "1", remoteType: given.type });
    }
  });

  it("with data that JSON would change are a provider's mistake", () => {
    const Loose = defineError("Loose", { data: Type.Unknown() });
    for (const data of [new Date(0), Number.NaN, 1n, [undefined]]) {
      expect(encodeError(new Loose({ data }))).toMatchObject({ kind: "call", type: "UnexpectedError" });
    }
  });
});

describe("what leaves the process", () => {
  it("is never a cause, a stack, a hint, a context, or the text of a bug", () => {
    const cause = new Error(`postgres://app:${SECRET}@db/x`, {
      cause: new AggregateError([new Error(SECRET)]),
    });
    const context = { subject: "_INBOX.con1.r.1", password: SECRET };
    const options = { cause, context, hint: SECRET };
    const errors: readonly BaseError[] = [
      UnexpectedError.from(cause),
      new UnexpectedError({ ...options, message: SECRET, details: { SECRET } }),
      new TransportError({ ...options, code: "c", message: `nats://10.0.0.1 ${SECRET}` }),
      new BusyError({ ...options, retryAfterMs: 1 }),
      new OutOfStock({ ...options, data: { sku: "a" } }),
    ];
    for (const error of errors) {
      const text = encodeErrorText(error);
      expect(text).not.toMatch(/hunter2|_INBOX|postgres|errors\.test/);
      expect(text).toContain(error.id);
    }
  });

  it("of an error of no kind of ours is only its id", () => {
    class Strange extends BaseError {
      readonly kind = "definition";
      readonly type = "Strange";
    }
    const error = new Strange(SECRET);
    expect(encodeError(error)).toEqual({
      id: error.id,
      kind: "call",
      type: "UnexpectedError",
      message: "An unexpected error occurred",
    });
  });

  it("is bounded and always JSON", () => {
    const errors = Array.from({ length: 1_000 }, () => ({ path: "/\ud800", message: "x".repeat(5_000) }));
    for (const error of [
      new ValidationError({ errors }),
      new NotFoundError({ message: `${"x".repeat(1_999)}😀${"y".repeat(100_000)}`, traceId: "\udc00" }),
      new ConflictError({ details: { when: Number.NaN } }),
    ]) {
      const envelope = encodeError(error);
      expect(encodeJson(envelope).ok).toBe(true);
      expect(encodeErrorText(error).length).toBeLessThan(120_000);
      expect(decodeError(envelope, {})).toBeInstanceOf(error.constructor);
    }
  });
});

describe("decodeError", () => {
  it("never throws, whatever came", () => {
    const shaped = fc.record({
      id: fc.oneof(fc.string(), fc.jsonValue()),
      kind: fc.constantFrom("call", "declared", "other", 1),
      type: fc.oneof(
        fc.constantFrom(
          "ValidationError",
          "AuthError",
          "BusyError",
          "TimeoutError",
          "RemoteError",
          "OutOfStock",
        ),
        fc.string(),
      ),
      message: fc.oneof(fc.string(), fc.jsonValue()),
      data: fc.jsonValue(),
      details: fc.oneof(
        fc.jsonValue(),
        fc.record({ errors: fc.jsonValue(), reason: fc.jsonValue(), retryAfterMs: fc.jsonValue() }),
      ),
      traceId: fc.jsonValue(),
    });
    fc.assert(
      fc.property(fc.oneof(fc.anything(), shaped), (envelope) => {
        const error = decodeError(envelope, declared);
        expect(error).toBeInstanceOf(BaseError);
        expect(["call", "declared"]).toContain(error.kind);
      }),
      { numRuns: 2_000 },
    );
  });
});
