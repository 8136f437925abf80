import { describe, expect, test } from "vitest";
import { LookUpPool } from "./look-up-pool.ts";

/** A pool whose look-ups end when they are told to; `begun` has their names, in order. */
function heldPool(options: ConstructorParameters<typeof LookUpPool>[0]) {
  const pool = new LookUpPool(options);
  const begun: string[] = [];
  const ends = new Map<string, (fail?: Error) => void>();
  const run = (sender: string, name: string) =>
    pool.run(sender, () => {
      begun.push(name);
      return new Promise<string>((resolve, reject) =>
        ends.set(name, (fail) => (fail === undefined ? resolve(`found ${name}`) : reject(fail))),
      );
    });
  const end = (name: string, fail?: Error) => ends.get(name)?.(fail);
  return { run, begun, end };
}

/** Everything that was settled has been acted on. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("LookUpPool", () => {
  test("one sender has few look-ups at a time, and takes no lane of another", async () => {
    const { run, begun, end } = heldPool({ lanes: 4, perSender: 2 });
    const first = run("flood", "a");
    void run("flood", "b");
    expect(await run("flood", "c")).toBeUndefined();
    const honest = run("honest", "d");
    expect(begun).toEqual(["a", "b", "d"]);
    end("d");
    expect(await honest).toBe("found d");
    end("a");
    expect(await first).toBe("found a");
    void run("flood", "e");
    expect(begun).toEqual(["a", "b", "d", "e"]);
  });

  test("a failed look-up is told of, and gives its lane and its place back", async () => {
    const { run, begun, end } = heldPool({ lanes: 1, perSender: 1 });
    const failing = run("one", "a");
    void run("two", "b");
    end("a", new Error("store"));
    await expect(failing).rejects.toThrow("store");
    await turn();
    expect(begun).toEqual(["a", "b"]);
    void run("one", "c");
    end("b");
    await turn();
    expect(begun).toEqual(["a", "b", "c"]);
  });

  test("with more names than there is room for, the newest goes first and the oldest is given up at once", async () => {
    const { run, begun, end } = heldPool({ lanes: 1, room: 2 });
    void run("s0", "running");
    const waiting = ["s1", "s2", "s3"].map((sender) => run(sender, sender));
    expect(await waiting[0]).toBeUndefined();
    const newest = run("honest", "honest");
    expect(await waiting[1]).toBeUndefined();
    end("running");
    await turn();
    expect(begun).toEqual(["running", "honest"]);
    end("honest");
    expect(await newest).toBe("found honest");
    await turn();
    expect(begun).toEqual(["running", "honest", "s3"]);
  });

  test("forgets senders that have nothing under way", async () => {
    const pool = new LookUpPool({ lanes: 2, room: 10, perSender: 1 });
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => pool.run(`s${index}`, () => Promise.resolve(index))),
    );
    expect(answers).toEqual(Array.from({ length: 12 }, (_, index) => index));
    expect(await pool.run("s0", () => Promise.resolve("again"))).toBe("again");
  });
});
