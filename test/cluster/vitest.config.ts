import { BaseSequencer, type TestSpecification } from "vitest/node";
import { defineConfig } from "vitest/config";

/** Files at a time, each in a lab of its own (host.ts). One leaves a machine of two processors idle half of the time. */
export const WORKERS = 2;
/** These are the longest: what begins last must not be long. */
const FIRST = ["kubectl", "join", "runtimes", "pods", "skeleton"];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => (FIRST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`)) + FIRST.length + 1) % (FIRST.length + 1);
    return files.toSorted((a, b) => place(a) - place(b) || a.moduleId.localeCompare(b.moduleId));
  }
}

/** The compiled binary on machines of its own. Time-outs are for machines that have much else to do: no test is about time. */
export default defineConfig({
  test: {
    include: ["test/cluster/**/*.test.ts"], pool: "threads", maxWorkers: WORKERS, globalSetup: "test/cluster/labs.ts", testTimeout: 300_000, hookTimeout: 300_000, bail: 0,
    sequence: { concurrent: false, sequencer: LongestFirst },
  },
});
