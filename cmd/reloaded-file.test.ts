import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../core/lifecycle/clock.ts";
import { silentLog } from "../core/observe/log.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { reloadMeter } from "./reload-meter.ts";
import { reloadedFile } from "./reloaded-file.ts";

test("a file is read again when it has changed; one that cannot be used changes nothing, and is counted", async () => {
  const directory = mkdtempSync(join(tmpdir(), "reloaded-")), path = join(directory, "file");
  const metrics = metricsRegistry();
  const read = (text: string): number => { if (Number.isNaN(Number(text))) throw new Error("no number"); return Number(text); };
  const write = (text: string): string => { writeFileSync(path, text); return text; };
  const told = (): string[] => metrics.render().split("\n").filter((line) => /^apiserver_authentication_config_controller_(last_config|automatic_reloads)/.test(line)).map((line) => line.replace(/.*controller_/, "").replace(/sha256:([0-9a-f]{4})[0-9a-f]+/g, "$1"));
  try {
    write("1");
    const texts = [() => write("2"), () => write("two"), () => undefined];
    const clock = { ...systemClock, async *every() { for (const next of texts) { next(); yield 0; } } } as unknown as typeof systemClock;
    const file = reloadedFile({ setting: "s", path, read, clock, log: silentLog, meter: reloadMeter(metrics, "authentication", { serverId: "me", clock }) });
    expect([file.current(), told()]).toEqual([1, ['last_config_info{apiserver_id_hash="2744",hash="6b86"} 1']]);
    await file.part.run(new AbortController().signal, () => undefined);
    expect(file.current()).toBe(2);
    expect(told().sort()).toEqual([
      'automatic_reloads_total{apiserver_id_hash="2744",status="failure"} 1', 'automatic_reloads_total{apiserver_id_hash="2744",status="success"} 1', 'last_config_info{apiserver_id_hash="2744",hash="d473"} 1',
    ]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("what speaks of other servers holds once they are there; until then the one before does, and it is tried again", async () => {
  const directory = mkdtempSync(join(tmpdir(), "reloaded-")), path = join(directory, "file");
  const seen: (string | undefined)[] = [];
  const held: string[] = [];
  let there = false;
  try {
    writeFileSync(path, "first");
    const steps = [() => writeFileSync(path, "second"), () => undefined, () => { there = true; }, () => undefined];
    const clock = { ...systemClock, after: () => ({ cancel: () => undefined }), async *every() { for (const step of steps) { held.push(file.current()); step(); yield; } } } as unknown as typeof systemClock;
    const read = (text: string, before: string | undefined): string => { seen.push(before); return text; };
    const file = reloadedFile({ setting: "s", path, read, clock, log: silentLog, settled: () => (there ? Promise.resolve() : Promise.reject(new Error("not there"))) });
    await file.part.run(new AbortController().signal, () => undefined);
    expect([held, seen, file.current()]).toEqual([["first", "first", "first", "second"], [undefined, "first", "first", "first"], "second"]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
