import { defineConfig } from "vitest/config";

/** The compiled binary on machines of its own. One file after another: they share the machine under them. */
export default defineConfig({
  test: { include: ["test/cluster/**/*.test.ts"], pool: "threads", fileParallelism: false, testTimeout: 180_000, hookTimeout: 180_000, bail: 0, sequence: { concurrent: false } },
});
