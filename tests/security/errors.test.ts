import { defineApi, defineApp, defineError, defineService, rpc, use } from "@trellis/contract";
import { TransportError, UnexpectedError } from "@trellis/protocol";
import { err } from "@trellis/result";
import type { TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Attacker } from "./attacker.ts";
import { bootstrap, makeKeys } from "./http.ts";
import { logTrap } from "./logs.ts";
import { shop, startScene } from "./scene.ts";

const Declared = defineError("Declared", { data: Type.Object({ left: Type.Number() }) });
const Undeclared = defineError("Undeclared", { data: Type.Object({ why: Type.String() }) });

const secret = "postgres://admin:hunter2@10.0.0.7/orders";
const api = defineApi("acme.faulty@v1", {
  rpc: {
    "Faulty.Fail": rpc({ input: Type.String(), output: Type.Number(), errors: [Declared] }),
  },
});
const app = defineApp("acme.faulty-app", { uses: [use(api)] });

/** An error as a driver throws it: everything about it is nobody's business. */
function driverError(): Error {
  const cause = new Error(`select * from users where password = 'hunter2' -- ${secret}`);
  const error = new Error(`connect ECONNREFUSED ${secret}`, { cause });
  return Object.assign(error, { query: "select 1", path: "/srv/acme/orders.ts", toJSON: () => ({ secret }) });
}

/** Ways to fail, and what the caller may learn. */
const unexpected: Record<string, () => unknown> = {
  "an error": () => {
    throw driverError();
  },
  "an error later": () => Promise.reject(driverError()),
  "several errors": () => {
    throw new AggregateError([driverError(), driverError()], secret);
  },
  "a text": () => {
    throw secret;
  },
  "an object": () => {
    throw { message: secret, kind: "declared", type: "Declared", data: { left: 1 }, stack: secret };
  },
  nothing: () => {
    throw undefined;
  },
  "an error of another shape": () => {
    throw Object.create(null, { message: { get: () => driverError().message } });
  },
  "our own unexpected error": () => {
    throw new UnexpectedError({ message: secret, cause: driverError(), context: { secret } });
  },
  "an error of a call further down": () => err(transportError()),
  "the same, thrown": () => {
    throw transportError();
  },
  "an error that was not declared": () => {
    throw new Undeclared({ data: { why: secret }, message: secret });
  },
  "a declared one whose data does not fit": () => {
    throw new Declared({ data: JSON.parse(JSON.stringify({ left: secret })) as { left: number } });
  },
  "an output that the contract does not allow": () => secret,
  "an output that JSON cannot carry": () => Number.NaN,
  "an error in place of an output": () => driverError(),
};

function transportError(): TransportError {
  return new TransportError({
    code: "trellis.connection.down",
    message: `no route to rpc.v1.acme_faulty@v1.x.Faulty_Fail by ${secret}`,
    hint: secret,
    context: { subject: "_INBOX.x.r.1" },
    cause: driverError(),
  });
}

let trellis: TestTrellis;
let attacker: Attacker;
const log = logTrap();

beforeAll(async () => {
  trellis = await startScene({ controlPlane: { log } });
  await trellis.service(
    defineService("acme.faulty", { implements: [api] }),
    ({ handle }) => {
      handle.rpc.faulty.fail(({ input }) => {
        if (input === "declared") {
          return new Declared({ data: { left: 3 }, message: "Three are left.", cause: driverError() });
        }
        if (input === "right") return 7;
        return unexpected[input]?.() as number;
      });
    },
    { runtime: { log } },
  );
  attacker = await Attacker.join(trellis, app);
});
afterAll(async () => {
  await attacker?.close();
  await trellis?.stop();
});

/** What nobody outside may read, whoever's fault it is. */
const internal =
  /hunter2|postgres|\n\s+at |\.ts\b|\/srv|\/work|node:|node_modules|select|rpc\.v1|_INBOX|acme_faulty|stack/i;

async function answer(input: unknown): Promise<{ status: number | undefined; payload: unknown }> {
  const echo = await attacker.ask(attacker.shot(api.id, "Faulty.Fail", input));
  if (echo?.kind !== "results" || !echo.authentic) throw new Error("no authentic answer");
  return { status: echo.results[0]?.status, payload: echo.results[0]?.payload };
}

describe("a handler that fails with", () => {
  it.each(Object.keys(unexpected))("%s tells the caller an id, and its own log the rest", async (how) => {
    const before = log.lines.length;
    const { status, payload } = await answer(how);
    expect(status).toBe(1);
    expect(payload).toEqual({
      id: expect.stringMatching(/^[0-9A-Za-z-]{20,}$/) as unknown,
      kind: "call",
      type: "UnexpectedError",
      message: "An unexpected error occurred",
    });
    expect(JSON.stringify(payload)).not.toMatch(internal);
    const logged = log.lines.slice(before).join("\n");
    expect(logged).toContain((payload as { id: string }).id);
    expect(logged).toContain("Faulty.Fail");
  });

  it("what it has declared tells the caller data and message, and nothing of the cause", async () => {
    const { status, payload } = await answer("declared");
    expect(status).toBe(1);
    expect(payload).toEqual({
      id: expect.any(String) as unknown,
      kind: "declared",
      type: "Declared",
      message: "Three are left.",
      data: { left: 3 },
    });
  });

  it("nothing answers", async () => {
    expect(await answer("right")).toEqual({ status: 0, payload: 7 });
  });
});

describe("an input that does not fit", () => {
  it("is blamed on the caller, by path, without repeating what it holds", async () => {
    const { payload } = await answer({ password: "hunter2" });
    expect(payload).toMatchObject({
      kind: "call",
      type: "ValidationError",
      details: { errors: [{ path: "" }] },
    });
    expect(JSON.stringify(payload)).not.toMatch(internal);
  });
});

describe("the runtime's view of such an error", () => {
  it("has the provider's id, no stack of the provider's and no cause", async () => {
    const client = await trellis.client(app);
    const failed = await client.rpc.faulty.fail("an error");
    const error = failed.isErr() ? failed.error : undefined;
    expect(error).toBeInstanceOf(UnexpectedError);
    expect(error?.cause).toBeUndefined();
    expect(JSON.stringify(error?.toSerializable())).not.toMatch(internal);
    expect(error?.message).not.toMatch(internal);
    expect(log.text()).toContain(error?.id);
    const declared = await client.rpc.faulty.fail("declared");
    expect(declared.isErr() && declared.error).toBeInstanceOf(Declared);
    expect(declared.isErr() && declared.error.cause).toBeUndefined();
  });
});

describe("the control plane", () => {
  it("that fails says so, and its log says why", async () => {
    const catalog = vi
      .spyOn(trellis.controlPlane.plane.catalog, "artifact")
      .mockRejectedValue(new Error(`SQLITE_CORRUPT /srv/acme/trellis.db ${secret}`));
    const answer = await bootstrap(trellis, { keys: makeKeys(), participant: shop });
    catalog.mockRestore();
    expect([answer.status, answer.code]).toEqual([503, "trellis.bootstrap.unavailable"]);
    expect(answer.text).not.toMatch(internal);
    expect(log.text()).toContain("SQLITE_CORRUPT");
    expect((await bootstrap(trellis, { keys: makeKeys(), participant: shop })).status).toBe(200);
  });
});
