import { join } from "node:path";
import { expect, test } from "vitest";
import { tokensIn } from "./hidden-token.ts";

const argumentsOf = (...argv: string[]): Buffer => Buffer.from(argv.map((one) => `${one}\0`).join(""));

test("tokens are found however they are given", () => {
  const shown = (...argv: string[]): string[] => { const line = argumentsOf(...argv); return tokensIn(line).map(([from, to]) => line.toString("utf8", from, to)); };
  expect(shown("coracle", "agent", "--token", "one", "--token=two", "--node-name", "n")).toEqual(["one", "two"]);
  expect(shown("coracle", "agent", "--token", "--token", "x")).toEqual(["--token"]);
  expect(shown("coracle", "agent", "--token-file", "f", "--token", "", "--token")).toEqual([]);
});

test.skipIf(process.platform !== "linux")("nobody else on the machine reads a token that this process was given; the process has it", async () => {
  const script = `
    const { hideToken } = await import(${JSON.stringify(join(import.meta.dirname, "hidden-token.ts"))});
    const argv = process.argv.slice(1);
    hideToken();
    console.log(JSON.stringify([argv, process.argv.slice(1), (await Bun.file("/proc/self/cmdline").text()).split("\\0").slice(3)]));`;
  const { stdout } = Bun.spawnSync([process.execPath, "-e", script, "agent", "--token", "K10ab::sécret", "--token=K10cd", "--node-name", "n"]);
  const given = ["agent", "--token", "K10ab::sécret", "--token=K10cd", "--node-name", "n"];
  const [before, after, shown] = JSON.parse(stdout.toString()) as string[][];
  expect([before, after]).toEqual([given, given]);
  expect(shown?.slice(0, 6)).toEqual(["agent", "--token", "*".repeat("K10ab::sécret".length + 1), "--token=*****", "--node-name", "n"]);
});
