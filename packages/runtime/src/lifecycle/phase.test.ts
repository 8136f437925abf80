import { describe, expect, test } from "vitest";
import { Phase } from "./phase.ts";

type State = { kind: "idle" } | { kind: "busy"; job: number } | { kind: "closed" };

describe("Phase", () => {
  test("tells the current state first, then each change in order, also when a listener sets one", () => {
    const phase = new Phase<State>({ kind: "idle" });
    const [a, b]: [string[], string[]] = [[], []];
    phase.subscribe((state) => {
      a.push(state.kind);
      if (state.kind === "busy") phase.set({ kind: "closed" });
    });
    phase.subscribe((state) => void b.push(state.kind));
    phase.set({ kind: "busy", job: 1 });
    expect([a, b, phase.current.kind]).toEqual([
      ["idle", "busy", "closed"],
      ["idle", "busy", "closed"],
      "closed",
    ]);
  });

  test("isolates exceptions and rejections", async () => {
    const errors: unknown[] = [];
    const phase = new Phase<State>({ kind: "idle" }, { onListenerError: (error) => errors.push(error) });
    phase.subscribe(() => {
      throw "thrown";
    });
    phase.subscribe(() => Promise.reject("rejected"));
    let seen = 0;
    phase.subscribe(() => void (seen += 1));
    phase.set({ kind: "closed" });
    await Promise.resolve();
    expect([seen, errors]).toEqual([2, ["thrown", "thrown", "rejected", "rejected"]]);
  });

  test("no call after unsubscribing, not even for the change being told", () => {
    const phase = new Phase<State>({ kind: "idle" });
    const seen: string[] = [];
    phase.subscribe((state) => {
      if (state.kind === "closed") stop();
    });
    const stop = phase.subscribe((state) => void seen.push(state.kind));
    phase.set({ kind: "closed" });
    expect(seen).toEqual(["idle"]);
  });

  test("until resolves with the wanted state and rejects on abort", async () => {
    const phase = new Phase<State>({ kind: "idle" });
    const busy = phase.until((state) => state.kind === "busy");
    const controller = new AbortController();
    const closed = phase.until((state) => state.kind === "closed", { signal: controller.signal });
    phase.set({ kind: "busy", job: 3 });
    controller.abort("enough");
    expect(await busy).toEqual({ kind: "busy", job: 3 });
    await expect(closed).rejects.toBe("enough");
    expect(await phase.until(() => true)).toBe(phase.current);
  });
});
