import { expect, test } from "vitest";
import { logLines } from "./log-line.ts";

test("a log is what was written: partial lines are joined, carriage returns and cut characters stay, and what is no line of a runtime's is passed over", async () => {
  const log = Buffer.from(["stderr F oh no", "stdout P half a ", "stdout F line", "stdout F 10 %\r20 %\u2028", "stdout F ", "stdout F the last"].map((line) => `2026-11-23T08:00:00.1Z ${line}\n`).join("").replace("2026", "?\n2026").slice(0, -1));
  for (const size of [1, 7, 1000]) {
    const said = { stdout: "", stderr: "" };
    const pieces = async function* () { for (let at = 0; at < log.length; at += size) yield log.subarray(at, at + size); };
    const contents: Record<"stdout" | "stderr", Buffer[]> = { stdout: [], stderr: [] };
    for await (const { stream, content } of logLines(pieces())) contents[stream].push(content);
    for (const stream of ["stdout", "stderr"] as const) said[stream] = Buffer.concat(contents[stream]).toString();
    expect(said).toEqual({ stdout: "half a line\n10 %\r20 %\u2028\n\nthe last", stderr: "oh no\n" });
  }
});
