import { expect, test } from "vitest";
import { unauthorized } from "../api/meta/status-error.ts";
import { GrpcError } from "../net/grpc/status.ts";
import type { Log } from "../observe/log.ts";
import { refusals } from "./refusals.ts";
import type { Transport } from "./transport.ts";

test("a refusal is said once, and again every ten minutes, by one only; so is its end", async () => {
  const lines: string[] = [];
  const write = (level: string) => (message: string, fields: Record<string, unknown> = {}): void => { if (level !== "debug") lines.push(`${level} ${message} ${JSON.stringify(fields)}`); };
  const log: Log = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error"), with: () => log };
  let nowMs = 0, revoked = true;
  const answer = (): object => { if (revoked) throw unauthorized("node a was revoked"); return {}; };
  const inner: Transport = { call: async () => answer(), async *watch() { yield { type: "ADDED", object: answer() as never }; } };
  const { log: quiet, heard } = refusals({ log, clock: { uptimeMs: () => nowMs } });
  const transport = heard(inner), part = quiet.with({ part: "x" });
  const request = { method: "GET", path: "/", signal: new AbortController().signal } as const;
  const ask = async (): Promise<void> => {
    await transport.call(request).catch((error: unknown) => part.warn("list failed", { error: new Error("list failed", { cause: error }) }));
    part.warn("no tunnel", { error: new GrpcError("unauthenticated", "node a was revoked") });
    try { for await (const _ of transport.watch(request)); } catch (error) { part.error("watch failed", { error }); }
  };
  await ask();
  await ask();
  expect(lines.splice(0)).toEqual(['error the API server does not accept this node {"reason":"node a was revoked"}']);
  nowMs = 600_000;
  await ask();
  expect(lines.splice(0)).toEqual(['error the API server does not accept this node {"reason":"node a was revoked"}']);
  revoked = false;
  await transport.call(request);
  await transport.call(request);
  part.warn("list failed", { error: new Error("for another reason") });
  expect(lines).toEqual(["info the API server accepts this node again {}", 'warn list failed {"error":{}}']);
});
