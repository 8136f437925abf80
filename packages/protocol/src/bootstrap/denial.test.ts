import { describe, expect, it } from "vitest";
import { DENIAL_CODES, isFinalDenial } from "./denial.ts";

describe("isFinalDenial", () => {
  it("needs both a final status and a final code", () => {
    for (const status of [401, 403, 404, 409, 410]) {
      expect(isFinalDenial(status, "trellis.bootstrap.revoked")).toBe(true);
      expect(isFinalDenial(status, "trellis.bootstrap.request_replayed")).toBe(false);
    }
    for (const status of [200, 408, 425, 429, 500, 502, 503, 504]) {
      expect(isFinalDenial(status, "trellis.bootstrap.revoked")).toBe(false);
    }
  });

  it("takes no code that is not ours: a proxy's refusal passes", () => {
    for (const code of ["", "forbidden", "constructor", "__proto__", "trellis.bootstrap.newer"]) {
      expect(isFinalDenial(403, code)).toBe(false);
    }
  });

  it("knows codes of one form", () => {
    for (const code of DENIAL_CODES) expect(code).toMatch(/^trellis\.bootstrap\.[a-z_]+$/);
  });
});
