import { expect, test } from "vitest";
import { silentLog } from "./log.ts";
import { trouble } from "./trouble.ts";

test("what goes wrong again and again is told once, again when it is something else, and every ten minutes while it lasts", () => {
  const told: string[] = [];
  let nowMs = 0;
  const ill = trouble("rules cannot be written", { log: { ...silentLog, error: (message, fields) => void told.push(`${nowMs / 60_000} min: ${message}: ${(fields!["error"] as Error).message}`) }, clock: { uptimeMs: () => nowMs } });
  for (; nowMs < 12 * 60_000; nowMs += 30_000) ill.tell(new Error("no nf_tables"));
  ill.tell(new Error("no room"));
  ill.tell(new Error("no room"));
  ill.over();
  ill.tell(new Error("no room"));
  expect(told).toEqual(["0 min: rules cannot be written: no nf_tables", "10 min: rules cannot be written: no nf_tables", "12 min: rules cannot be written: no room", "12 min: rules cannot be written: no room"]);
});
