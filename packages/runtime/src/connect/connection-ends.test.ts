import { expect, it } from "vitest";
import { ConnectionEnds } from "./connection-ends.ts";

const end = (connection: string, at: number) => ({
  version: 1 as const,
  issuer: "issuer",
  connection,
  deployment: "d",
  instance: "i",
  at,
  reason: "disconnected",
});

it("hears each end once, and old ones not at all", () => {
  const ends = new ConnectionEnds();
  const now = 10_000_000;
  expect(ends.take(end("a", now), now)).toBe(true);
  expect(ends.take(end("a", now), now + 5)).toBe(false);
  expect(ends.take(end("a", now - 5), now + 5)).toBe(false);
  expect(ends.take(end("a", now + 9), now + 9)).toBe(true);
  expect(ends.take(end("b", now - 3_600_001), now)).toBe(false);
  for (let id = 0; id < 10_000; id++) expect(ends.take(end(`c${id}`, now + 10), now + 10)).toBe(true);
  expect(ends.take(end("a", now + 9), now + 4_000_000)).toBe(false);
});
