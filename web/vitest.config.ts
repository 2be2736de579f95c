import { defineConfig } from "vitest/config";

/** Pages are opened one after the other: the machine may be small. */
export default defineConfig({
  test: { include: ["tests/*.test.ts"], testTimeout: 60_000, hookTimeout: 180_000, fileParallelism: false },
});
