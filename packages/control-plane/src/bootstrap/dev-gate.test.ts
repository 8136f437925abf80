import { describe, expect, it } from "vitest";
import { foreignSurroundings, holdsDevToken, tokenOwner } from "./dev-gate.ts";
import { candidateOrigins, loopbackOrigins } from "./origins.ts";
import { RequestIds } from "./request-ids.ts";

const own = loopbackOrigins(4000);

function foreign(changes: { host?: string | undefined; origin?: string; names?: string[] }) {
  return foreignSurroundings({ host: "localhost:4000", origin: undefined, names: ["host"], ...changes }, own);
}

describe("dev gate", () => {
  it.each(["localhost:4000", "127.0.0.1:4000", "[::1]:4000", "LOCALHOST:4000", "127.0.0.1"])(
    "takes %s",
    (host) => {
      expect(foreign({ host })).toBeUndefined();
    },
  );

  it.each([
    undefined,
    "",
    "evil.example",
    "localhost.evil.example:4000",
    "127.0.0.1.evil.example",
    "[::2]:4000",
    "10.0.0.1:4000",
  ])("refuses host %s", (host) => {
    expect(foreign({ host })).toMatch(/Host/);
  });

  it("takes its own origin and refuses another, null included", () => {
    expect(foreign({ origin: "http://localhost:4000" })).toBeUndefined();
    for (const origin of ["http://localhost:4001", "https://evil.example", "null"]) {
      expect(foreign({ origin })).toMatch(/origin/);
    }
  });

  it.each(["forwarded", "via", "x-real-ip", "x-forwarded-for", "x-forwarded-host"])(
    "refuses a proxy's %s",
    (name) => {
      expect(foreign({ names: ["host", name] })).toMatch(/proxy/);
    },
  );

  it("compares tokens exactly", () => {
    expect(holdsDevToken("Bearer secret", "secret")).toBe(true);
    for (const header of [
      undefined,
      "",
      "secret",
      "Bearer",
      "Bearer secre",
      "Bearer secret ",
      "Bearer secret x",
      "Basic secret",
    ]) {
      expect(holdsDevToken(header, "secret")).toBe(false);
    }
    expect(tokenOwner("a")).not.toBe(tokenOwner("b"));
  });
});

describe("proof origins", () => {
  it("are the configured ones, the one of the Host header first", () => {
    expect(candidateOrigins(own, "localhost:4000")[0]).toBe("http://localhost:4000");
    expect([...candidateOrigins(own, "evil:1")].sort()).toEqual([...own].sort());
  });
});

describe("request ids", () => {
  it("are single use for a minute and refuse rather than forget when full", () => {
    const ids = new RequestIds(2);
    expect(ids.use("a", 0)).toBe("fresh");
    expect(ids.use("a", 59_999)).toBe("replayed");
    expect(ids.use("b", 100)).toBe("fresh");
    expect(ids.use("c", 200)).toBe("full");
    expect(ids.use("a", 60_000)).toBe("fresh");
  });
});
