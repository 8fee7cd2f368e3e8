import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import type { Cri } from "../../cri/client.ts";
import { rotateIfLarge } from "./rotation.ts";

test("a log that grew too large is put aside, older ones are compressed, the oldest go", async () => {
  const directory = mkdtempSync(join(tmpdir(), "log-"));
  const path = join(directory, "0.log");
  let nowMs = Date.UTC(2026, 0, 1);
  const reopened: string[] = [];
  const cri = { call: async (_: string, { container_id }: { container_id: string }) => {
    reopened.push(container_id);
    appendFileSync(path, "");
    return {};
  } } as unknown as Cri;
  const deps = { cri, clock: { ...systemClock, nowMs: () => nowMs }, bytesMax: 100, filesMax: 3 };
  const rotate = () => rotateIfLarge(deps, { containerId: "c1", path }, new AbortController().signal);
  try {
    appendFileSync(path, "small");
    expect(await rotate()).toBe(false);
    for (let i = 0; i < 4; i++) {
      appendFileSync(path, `${i}`.repeat(200));
      expect(await rotate()).toBe(true);
      nowMs += 60_000;
    }
    expect(readdirSync(directory).toSorted()).toEqual(["0.log", "0.log.20260101-000200.gz", "0.log.20260101-000300"]);
    expect(gunzipSync(readFileSync(join(directory, "0.log.20260101-000200.gz"))).toString()).toBe("2".repeat(200));
    expect(reopened).toEqual(["c1", "c1", "c1", "c1"]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
