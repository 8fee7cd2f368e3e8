import { defineConfig } from "vitest/config";

/** One after another: emulators are slow enough alone. */
export default defineConfig({
  test: { include: ["test/platforms/**/*.test.ts"], pool: "threads", fileParallelism: false, testTimeout: 900_000, hookTimeout: 900_000, sequence: { concurrent: false } },
});
