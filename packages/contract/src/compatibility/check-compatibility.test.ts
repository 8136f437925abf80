import Type from "typebox";
import { describe, expect, test } from "vitest";
import {
  defineApi,
  defineApp,
  defineError,
  event,
  operation,
  type RpcDefinition,
  rpc,
  type SchemaLike,
  use,
} from "../index.ts";
import { checkCompatibility } from "./check-compatibility.ts";

describe("checkCompatibility", () => {
  const Gone = defineError("Gone", { data: Type.Object({ n: Type.Number() }) });
  const Gone2 = defineError("Gone", { data: Type.Object({ n: Type.String() }) });
  const api = (definition: RpcDefinition<SchemaLike | undefined, SchemaLike | undefined, typeof Gone>) =>
    defineApi("acme.a@v1", {
      rpc: {
        "A.Do": rpc({ ...definition, input: definition.input as never, output: definition.output as never }),
      },
    }).artifact;
  const small = Type.Object({ a: Type.String() });
  const large = Type.Object({ a: Type.String(), b: Type.String() });
  const findings = (before: ReturnType<typeof api>, after: ReturnType<typeof api>) =>
    checkCompatibility({ before, after }).findings;

  test("a provider may accept more and promise more", () => {
    expect(
      checkCompatibility({
        before: api({ input: large, output: small }),
        after: api({ input: small, output: large }),
      }),
    ).toEqual({
      compatible: true,
      findings: [],
    });
    expect(findings(api({ input: small, output: large }), api({ input: large, output: small }))).toEqual([
      { path: "rpc/A.Do/input/b", reason: "it is required and may be missing", breaks: "consumer" },
      { path: "rpc/A.Do/output/b", reason: "it is required and may be missing", breaks: "consumer" },
    ]);
  });

  test("by direction: a consumer that moves first meets the older provider", () => {
    const before = api({ input: small });
    const after = api({ input: Type.Object({ a: Type.Union([Type.String(), Type.Number()]) }) });
    expect(checkCompatibility({ before, after }).compatible).toBe(true);
    expect(checkCompatibility({ before, after, moves: "consumer" }).findings).toEqual([
      { path: "rpc/A.Do/input/a", reason: "number is not accepted, only string", breaks: "provider" },
    ]);
  });

  test("nothing is the JSON value null", () => {
    expect(findings(api({}), api({ input: Type.Null() }))).toEqual([]);
    expect(findings(api({}), api({ input: small }))).toMatchObject([{ path: "rpc/A.Do/input" }]);
    expect(findings(api({}), api({ output: small }))).toMatchObject([{ path: "rpc/A.Do/output" }]);
  });

  test("errors may be added and dropped, not changed", () => {
    expect(findings(api({}), api({ errors: [Gone] }))).toEqual([]);
    expect(findings(api({ errors: [Gone] }), api({}))).toEqual([]);
    expect(findings(api({ errors: [Gone] }), api({ errors: [Gone2 as never] }))).toMatchObject([
      { path: "rpc/A.Do/errors/Gone/n" },
    ]);
  });

  test("idempotency and downloads are promises too", () => {
    expect(findings(api({}), api({ idempotent: true }))).toEqual([]);
    expect(findings(api({ idempotent: true }), api({}))).toMatchObject([{ path: "rpc/A.Do/idempotent" }]);
    expect(
      findings(api({ idempotent: true }), api({ input: Type.Unsafe<null>({}), idempotent: { key: "/a" } })),
    ).toEqual([]);
    expect(findings(api({}), api({ download: true }))).toMatchObject([{ path: "rpc/A.Do/download" }]);
  });

  test("actions may be added, not dropped; a consumer is asked only about what it uses", () => {
    const one = defineApi("acme.a@v1", { rpc: { "A.Do": rpc() } });
    const two = defineApi("acme.a@v1", {
      rpc: { "A.Do": rpc(), "A.More": rpc() },
      events: { "A.Done": event({ payload: small }) },
    });
    expect(checkCompatibility({ before: one.artifact, after: two.artifact }).compatible).toBe(true);
    expect(
      checkCompatibility({ before: two.artifact, after: one.artifact }).findings.map((f) => f.path),
    ).toEqual(["rpc/A.More", "events/A.Done"]);
    const app = defineApp("acme.shop", { uses: [use(two, { rpc: ["A.Do"] })] });
    const [used] = app.artifact.uses;
    expect(used && checkCompatibility({ before: used, after: one.artifact }).compatible).toBe(true);
  });

  test("events and operations", () => {
    interface Parts {
      readonly params: readonly "a"[];
      readonly cancel: boolean;
      readonly signals: Record<string, SchemaLike>;
      readonly maxSize: number;
    }
    const make = ({ params, cancel, signals, maxSize }: Parts) =>
      defineApi("acme.a@v1", {
        events: { "A.Done": event({ payload: small, params }) },
        operations: { "A.Run": operation({ cancel, signals, upload: { maxSize } }) },
      }).artifact;
    const before = make({
      params: ["a"],
      cancel: true,
      signals: { stop: Type.String(), go: Type.Null() },
      maxSize: 10,
    });
    expect(checkCompatibility({ before, after: before }).compatible).toBe(true);
    const after = make({ params: [], cancel: false, signals: { stop: Type.Number() }, maxSize: 5 });
    const { findings } = checkCompatibility({ before, after });
    expect(findings.map((f) => f.path)).toEqual([
      "events/A.Done/params",
      "operations/A.Run/signals/stop",
      "operations/A.Run/signals/go",
      "operations/A.Run/cancel",
      "operations/A.Run/upload",
    ]);
  });
});
