import { defineConfig } from "vitest/config";

const conditions = ["@trellis/source"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/src/**/*.test.ts", "tests/**/*.test.ts"],
    pool: "forks",
    testTimeout: 20_000,
    hookTimeout: 30_000,
    restoreMocks: true,
  },
});
