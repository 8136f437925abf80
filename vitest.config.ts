import { defineConfig } from "vitest/config";

const conditions = ["@trellis/source"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/src/**/*.test.ts", "tests/**/*.test.ts"],
    globalSetup: ["tests/setup/programs.ts"],
    pool: "forks",
    // Most tests wait for real servers; two at a time is what a small machine has cores for.
    maxWorkers: 2,
    maxConcurrency: 4,
    testTimeout: 40_000,
    hookTimeout: 30_000,
    restoreMocks: true,
  },
});
