import { expect, test } from "vitest";
import { systemClock } from "../lifecycle/clock.ts";
import { silentLog } from "../observe/log.ts";
import { certificateRotation } from "./rotate.ts";

test("who uses certificates hears of new ones, again until it has taken them", async () => {
  const answers = [[], ["serving-apiserver"], ["client-admin"], []];
  const heard: (readonly string[])[] = [];
  let failures = 0;
  const clock = { ...systemClock, async *every() { for (const _ of [...answers]) yield; } };
  const pki = { renew: async () => answers.shift() ?? [] };
  await certificateRotation({ pki, clock, log: silentLog, failed: () => void failures++, async onRenewed(names) { heard.push(names); if (heard.length === 1) throw new Error("no space left on device"); } }).run(new AbortController().signal, () => undefined);
  expect(heard).toEqual([["serving-apiserver"], ["serving-apiserver", "client-admin"]]);
  expect(failures).toBe(1);
});
