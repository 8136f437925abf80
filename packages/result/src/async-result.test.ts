import { describe, expect, test, vi } from "vitest";
import { AsyncResult, err, ok, type Result, UnexpectedError } from "./index.ts";

const good = () => AsyncResult.try((): number => 2, String);
const bad = () => AsyncResult.try<number, string>(() => Promise.reject("bad"), String);

describe("AsyncResult", () => {
  test("gives a Result when awaited, as often as one likes", async () => {
    const result = good();
    expect(await result).toEqual(ok(2));
    expect(await result).toEqual(ok(2));
    expect(await AsyncResult.ok(1)).toEqual(ok(1));
    expect(await AsyncResult.err("e")).toEqual(err("e"));
    expect(await AsyncResult.from(ok(3))).toEqual(ok(3));
  });

  test("chains like a Result, with callbacks that may be asynchronous", async () => {
    expect(await good().map(async (n) => n + 1)).toEqual(ok(3));
    expect(await bad().map((n) => n + 1)).toEqual(err("bad"));
    expect(await bad().mapErr((e) => e.toUpperCase())).toEqual(err("BAD"));
    expect(await good().andThen((n) => ok(n * 2))).toEqual(ok(4));
    expect(await good().andThen(() => AsyncResult.err("late"))).toEqual(err("late"));
    expect(await bad().orElse(() => ok(0))).toEqual(ok(0));
    expect(await good().match({ ok: (n) => n, err: () => -1 })).toBe(2);
    expect(await bad().unwrapOrElse(() => 0)).toBe(0);
  });

  test("take and orThrow leave it", async () => {
    expect(await good().take()).toBe(2);
    expect(await bad().take()).toEqual(err("bad"));
    expect(await good().orThrow()).toBe(2);
    const cause = new TypeError("boom");
    await expect(AsyncResult.err(cause).orThrow()).rejects.toBe(cause);
    await expect(bad().orThrow()).rejects.toBeInstanceOf(UnexpectedError);
  });

  test("never rejects: rejections and throwing callbacks become UnexpectedErrors", async () => {
    const cause = new Error("socket");
    const throws = () => {
      throw cause;
    };
    const rejected = AsyncResult.from(Promise.reject<Result<number, never>>(cause));
    for (const result of [
      await rejected,
      await good().map(throws),
      await bad().mapErr(throws),
      await good().andThen(throws),
      await bad().orElse(throws),
      await AsyncResult.try(throws),
      await AsyncResult.try(() => Promise.reject(cause)),
      await AsyncResult.all([
        { then: (_: unknown, no: (e: unknown) => void) => no(cause) } as PromiseLike<Result<1, 2>>,
      ]),
    ]) {
      expect(result.isErr() && result.error).toMatchObject({ type: "UnexpectedError", cause });
    }
    expect(await AsyncResult.try(throws, () => "mapped")).toEqual(err("mapped"));
  });

  test("begins its work at once and runs it once", async () => {
    const work = vi.fn(async () => 1);
    const result = AsyncResult.try(work);
    expect(work).toHaveBeenCalledTimes(1);
    await Promise.all([result, result.take(), result.orThrow()]);
    expect(work).toHaveBeenCalledTimes(1);
  });

  test("deferred settles before or after it is looked at, and only once", async () => {
    const early = AsyncResult.deferred<number, string>();
    early.resolve(ok(1));
    early.resolve(ok(2));
    expect(await early.result).toEqual(ok(1));
    const late = AsyncResult.deferred<number, string>();
    const seen = [late.result.take(), late.result.then((r) => r.ok)];
    late.resolve(err("no"));
    late.resolve(ok(2));
    expect(await Promise.all(seen)).toEqual([err("no"), false]);
  });

  test("all waits for every one", async () => {
    expect(await AsyncResult.all([good(), AsyncResult.ok("a")])).toEqual(ok([2, "a"]));
    expect(await AsyncResult.all([good(), bad()])).toEqual(err("bad"));
  });
});
