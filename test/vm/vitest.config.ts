import { defineConfig } from "vitest/config";
import { SLOWNESS } from "./machine.ts";

/** Whole machines with a Debian of their own: one after the other. */
export default defineConfig({
  test: { include: ["test/vm/**/*.test.ts"], pool: "threads", fileParallelism: false, testTimeout: 300_000 * SLOWNESS, hookTimeout: 600_000 * SLOWNESS, sequence: { concurrent: false } },
});
