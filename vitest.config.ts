import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";

/** What Bun does by itself: `import text from "./x.txt" with { type: "text" }`. */
const textModules = {
  name: "text-modules",
  enforce: "pre" as const,
  load(id: string) { return id.endsWith(".txt") ? `export default ${JSON.stringify(readFileSync(id, "utf8"))}` : undefined; },
};

/** Unit, contract and scenario tests. The cluster and platform tests run compiled binaries and have runners of their own: test/run.sh. */
export default defineConfig({
  plugins: [textModules],
  test: { include: ["{cmd,core,node,storage,installers,test}/**/*.test.ts"], exclude: ["test/cluster/**", "test/platforms/**", "test/vm/**", "node_modules/**"], pool: "threads", globalSetup: "test/temporary-files.ts", testTimeout: 30_000 },
});
