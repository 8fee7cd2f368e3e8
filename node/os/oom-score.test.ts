import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

test("a process takes another place among those that may be killed, and what it starts has it too; one that may not is told", () => {
  const run = (adjust: number) => execFileSync(process.execPath, ["-e", `
    const { adjustOomScore } = await import(${JSON.stringify(`${import.meta.dirname}/oom-score.ts`)});
    adjustOomScore(${adjust}, { info: (text, { wanted }) => console.log(text, wanted) });
    console.log(require("node:child_process").execFileSync("cat", ["/proc/self/oom_score_adj"]).toString().trim());
  `]).toString().trim();
  expect(run(500)).toBe("500");
  expect(run(5000).split("\n")[0]).toBe("this process may be killed before others when there is no memory left 5000");
});
