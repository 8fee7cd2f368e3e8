import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

const START = `
  import { connect, createServer } from "node:net";
  import { lastWords } from "${import.meta.dirname}/last-words.ts";
  import { stderrLog } from "${import.meta.dirname}/stderr-log.ts";
  lastWords(process, stderrLog("info"));
  setTimeout(() => process.exit(0), 60_000);
`;

test.each([
  ["a socket's callback", "exception", `const server = createServer((socket) => socket.on("data", () => { throw new TypeError("torn"); })).listen(0, "127.0.0.1", () => connect(server.address().port, "127.0.0.1").end("x"));`],
  ["an event nobody listens to", "exception", `const server = createServer((socket) => socket.destroy(new TypeError("torn"))).listen(0, "127.0.0.1", () => connect(server.address().port, "127.0.0.1"));`],
  ["a promise", "rejection", `void Promise.reject(new TypeError("torn"));`],
])("what %s throws is told in one line, with its stack, and ends the process", (_, origin, then) => {
  const { status, stderr } = spawnSync(process.execPath, ["-e", START + then], { encoding: "utf8", timeout: 60_000 });
  expect({ status, lines: stderr.trim().split("\n").map((line) => JSON.parse(line) as unknown) }).toEqual({ status: 1, lines: [expect.objectContaining({
    level: "error", msg: "fatal: an error that nothing handled ends the process", origin, error: expect.objectContaining({ type: "TypeError", message: "torn", stack: expect.stringMatching(/TypeError: torn\n +at /) }),
  })] });
});
