import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";

/** What Bun does by itself: `import text from "./x.txt" with { type: "text" }`. */
const textModules = {
  name: "text-modules",
  enforce: "pre" as const,
  load(id: string) { return id.endsWith(".txt") ? `export default ${JSON.stringify(readFileSync(id, "utf8"))}` : undefined; },
};

/** No test is about time. Longer than any takes on a machine that has much else to do; what would take minutes ends here. */
const LIMIT_MS = 120_000;

/** Unit, contract and scenario tests. The cluster and platform tests run compiled binaries and have runners of their own: test/run.sh. */
export default defineConfig({
  plugins: [textModules],
  test: {
    include: ["{cmd,core,node,storage,installers,test}/**/*.test.ts"], exclude: ["test/cluster/**", "test/platforms/**", "test/vm/**", "node_modules/**"], pool: "threads", globalSetup: "test/temporary-files.ts",
    testTimeout: LIMIT_MS, hookTimeout: LIMIT_MS, expect: { poll: { timeout: LIMIT_MS / 2 } },
  },
});
