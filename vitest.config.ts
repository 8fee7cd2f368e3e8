import { defineConfig } from "vitest/config";

/** Unit, contract and scenario tests. The cluster tests run the compiled binary and have a runner of their own: test/run.sh. */
export default defineConfig({
  test: { include: ["{cmd,core,node,storage,installers,test}/**/*.test.ts"], exclude: ["test/cluster/**", "node_modules/**"], pool: "threads", testTimeout: 30_000 },
});
