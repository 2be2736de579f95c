import { defineConfig } from "vitest/config";

/** Two files at a time: each has a browser, and waits for it as often as it computes. */
export default defineConfig({
  test: { include: ["tests/*.test.ts"], testTimeout: 60_000, hookTimeout: 180_000, maxWorkers: 2 },
});
