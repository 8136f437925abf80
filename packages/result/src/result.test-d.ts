import { expectTypeOf, test } from "vitest";
import {
  AsyncResult,
  type Err,
  err,
  isErr,
  isOk,
  type Ok,
  ok,
  Result,
  type UnexpectedError,
} from "./index.ts";

class Missing extends Error {
  readonly type = "Missing";
}
class Full extends Error {
  readonly type = "Full";
}
declare function find(id: string): Result<{ id: string }, Missing>;
declare function load(id: string): AsyncResult<number, Missing>;

test("methods narrow the union", () => {
  const r = find("a");
  if (r.isErr()) expectTypeOf(r.error).toEqualTypeOf<Missing>();
  else expectTypeOf(r.value).toEqualTypeOf<{ id: string }>();
  if (r.isOk()) expectTypeOf(r.value).toEqualTypeOf<{ id: string }>();
  else expectTypeOf(r.error).toEqualTypeOf<Missing>();
  if (r.ok) expectTypeOf(r.value).toEqualTypeOf<{ id: string }>();
  if (isErr(r)) expectTypeOf(r.error).toEqualTypeOf<Missing>();
  if (isOk(r)) expectTypeOf(r.value).toEqualTypeOf<{ id: string }>();
  // @ts-expect-error - the value is not there before narrowing
  expectTypeOf(find("a").value).toBeAny();
});

test("an Err that was found can be returned as any Result with its error", () => {
  const step = (id: string): Result<number, Missing | Full> => {
    const r = find(id);
    if (r.isErr()) return r;
    expectTypeOf(r).toEqualTypeOf<Ok<{ id: string }>>();
    const s = find(r.value.id);
    return s.ok ? ok(1) : s;
  };
  const wrong = (id: string): Result<number, Full> => {
    const r = find(id);
    // @ts-expect-error - Missing is not an error of this function
    if (r.isErr()) return r;
    return ok(1);
  };
  expectTypeOf([step, wrong]).toBeArray();
});

test("take() gives the value or an Err that can be returned as it is", () => {
  const step = (id: string): Result<string, Missing | Full> => {
    const found = find(id).take();
    if (isErr(found)) {
      expectTypeOf(found).toEqualTypeOf<Err<Missing>>();
      return found;
    }
    expectTypeOf(found).toEqualTypeOf<{ id: string }>();
    return ok(found.id);
  };
  expectTypeOf(step).returns.toEqualTypeOf<Result<string, Missing | Full>>();
  const later = async () => {
    const n = await load("x").take();
    if (isErr(n)) return n;
    expectTypeOf(n).toEqualTypeOf<number>();
    return ok(n + 1);
  };
  expectTypeOf(AsyncResult.from(later())).toEqualTypeOf<AsyncResult<number, Missing | UnexpectedError>>();
});

test("take() of a nullable or unknown value", () => {
  const r: Result<string | undefined, Missing> = find("x").map((x): string | undefined => x.id);
  const v = r.take();
  if (!isErr(v)) expectTypeOf(v).toEqualTypeOf<string | undefined>();
  const u: unknown = v;
  if (isErr(u)) expectTypeOf(u.error).toBeUnknown();
});

test("errors accumulate along a chain", () => {
  const r = find("a").andThen((x) => (x.id === "" ? err(new Full()) : ok(1)));
  expectTypeOf(r).toEqualTypeOf<Result<number, Missing | Full>>();
  expectTypeOf(find("a").orElse(() => ok(3))).toEqualTypeOf<Result<{ id: string } | number, never>>();
  expectTypeOf(find("a").orThrow()).toEqualTypeOf<{ id: string }>();
  expectTypeOf(find("a").unwrapOrElse(() => 0)).toEqualTypeOf<{ id: string } | number>();
  expectTypeOf(find("a").match({ ok: (x) => x.id, err: (e) => e.type })).toEqualTypeOf<string>();
  expectTypeOf(find("a").map((x) => x.id)).toEqualTypeOf<Result<string, Missing>>();
  expectTypeOf(find("a").mapErr(() => new Full())).toEqualTypeOf<Result<{ id: string }, Full>>();
  expectTypeOf(load("a").andThen(() => load("b"))).toEqualTypeOf<AsyncResult<number, Missing>>();
  expectTypeOf(load("a").andThen((n) => (n > 1 ? ok("x") : err(new Full())))).toEqualTypeOf<
    AsyncResult<string, Missing | Full>
  >();
  expectTypeOf(load("a").map((n) => Promise.resolve(String(n)))).toEqualTypeOf<
    AsyncResult<string, Missing>
  >();
  expectTypeOf(load("a").orThrow()).toEqualTypeOf<Promise<number>>();
});

test("one arm alone has the same methods", () => {
  expectTypeOf(ok(1).map((n) => String(n))).toEqualTypeOf<Result<string, never>>();
  expectTypeOf(ok(1).orThrow()).toEqualTypeOf<number>();
  expectTypeOf(err(new Full()).mapErr(() => new Missing())).toEqualTypeOf<Result<never, Missing>>();
});

test("a union of errors, as a function without an annotation returns it, has the same methods", () => {
  const pick = (n: number) => (n === 0 ? err(new Missing()) : n === 1 ? err(new Full()) : ok(n));
  const r = pick(3);
  if (r.isErr()) expectTypeOf(r.error).toEqualTypeOf<Missing | Full>();
  else expectTypeOf(r.value).toEqualTypeOf<number>();
  expectTypeOf(r.map((n) => String(n))).toEqualTypeOf<Result<string, Missing | Full>>();
  expectTypeOf(r.andThen((n) => pick(n))).toEqualTypeOf<Result<number, Missing | Full>>();
  expectTypeOf(AsyncResult.from(Promise.resolve(r))).toEqualTypeOf<
    AsyncResult<number, Missing | Full | UnexpectedError>
  >();
  expectTypeOf(AsyncResult.ok("a").andThen(async () => pick(1))).toEqualTypeOf<
    AsyncResult<number, Missing | Full>
  >();
});

test("all keeps tuples", () => {
  expectTypeOf(Result.all([ok(1), find("a")])).toEqualTypeOf<Result<[number, { id: string }], Missing>>();
  expectTypeOf(AsyncResult.all([load("a"), AsyncResult.ok("x")])).toEqualTypeOf<
    AsyncResult<[number, string], Missing>
  >();
});

test("both are covariant", () => {
  expectTypeOf<AsyncResult<never, Missing>>().toExtend<AsyncResult<unknown, Missing | Full>>();
  expectTypeOf<Ok<1>>().toExtend<Result<number, Missing>>();
});

test("awaiting an AsyncResult gives a Result", async () => {
  expectTypeOf(await load("a")).toEqualTypeOf<Result<number, Missing>>();
});
