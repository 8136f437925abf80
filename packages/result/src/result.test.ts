import { describe, expect, test } from "vitest";
import { Err, err, isErr, isOk, isResult, Ok, ok, Result, UnexpectedError } from "./index.ts";

const half = (n: number): Result<number, string> => (n % 2 === 0 ? ok(n / 2) : err("bad"));
const two = half(4);
const bad = half(3);

describe("Result", () => {
  test("knows its arm", () => {
    expect([two.isOk(), two.isErr(), bad.isOk(), bad.isErr()]).toEqual([true, false, false, true]);
    expect([isOk(two), isErr(two), isOk(bad), isErr(bad), isErr("bad"), isOk(undefined)]).toEqual([
      ...[true, false, false, true, false, false],
    ]);
    expect(ok().value).toBeUndefined();
  });

  test("map, mapErr, andThen, orElse change one arm and leave the other", () => {
    expect(two.map((n) => n + 1)).toEqual(ok(3));
    expect(bad.map((n) => n + 1)).toBe(bad);
    expect(two.mapErr((e) => e.length)).toBe(two);
    expect(bad.mapErr((e) => e.length)).toEqual(err(3));
    expect(two.andThen((n) => ok(n * 2))).toEqual(ok(4));
    expect(two.andThen(() => err("no"))).toEqual(err("no"));
    expect(bad.andThen((n) => ok(n * 2))).toBe(bad);
    expect(two.orElse(() => ok(0))).toBe(two);
    expect(bad.orElse((e) => ok(e.length))).toEqual(ok(3));
  });

  test("match, unwrapOrElse, take and orThrow leave it", () => {
    const arms = { ok: (n: number) => `ok ${n}`, err: (e: string) => `err ${e}` };
    expect([two.match(arms), bad.match(arms)]).toEqual(["ok 2", "err bad"]);
    expect([two.unwrapOrElse(() => 0), bad.unwrapOrElse(() => 0)]).toEqual([2, 0]);
    expect(two.take()).toBe(2);
    expect(bad.take()).toBe(bad);
    expect(two.orThrow()).toBe(2);
    const cause = new TypeError("boom");
    expect(() => err(cause).orThrow()).toThrow(cause);
    expect(() => bad.orThrow()).toThrow(UnexpectedError);
  });

  test("all gives every value or the first error", () => {
    expect(Result.all([ok(1), ok("a")])).toEqual(ok([1, "a"]));
    expect(Result.all([ok(1), err("x"), err("y")])).toEqual(err("x"));
    expect(Result.all([])).toEqual(ok([]));
  });

  test("try turns what is thrown into an Err", () => {
    const thrower = (): never => {
      throw new RangeError("far");
    };
    expect(Result.try(() => 1)).toEqual(ok(1));
    const caught = Result.try(thrower);
    expect(caught.isErr() && caught.error).toBeInstanceOf(UnexpectedError);
    expect(caught.isErr() && caught.error.cause).toBeInstanceOf(RangeError);
    expect(Result.try(thrower, () => "mapped")).toEqual(err("mapped"));
  });

  test("isResult goes by brand, so that copies of the package interoperate", () => {
    expect([
      isResult(new Ok(1)),
      isResult(new Err(1)),
      isResult({ ok: true, value: 1 }),
      isResult(null),
    ]).toEqual([...[true, true, false, false]]);
    const foreign = Object.create({ [Symbol.for("trellis.result")]: true }, { ok: { value: false } });
    expect(isErr(foreign)).toBe(true);
  });
});
