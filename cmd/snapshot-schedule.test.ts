import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, test, vi } from "vitest";
import type { Clock } from "../core/lifecycle/clock.ts";
import { silentLog } from "../core/observe/log.ts";
import { backupStream, saveBackup } from "../storage/backup.ts";
import { checkStore } from "../storage/check.ts";
import { snapshot } from "./snapshot.ts";
import { newestSnapshot, newSnapshotFile, pruneSnapshots } from "./snapshot-files.ts";
import { hasFuse, silentFileSystem } from "../test/silent-file-system.ts";
import { snapshotSchedule } from "./snapshot-schedule.ts";

const START_MS = Date.parse("2026-03-01T12:00:00Z");
const HOUR_MS = 3_600_000;

/** Runs for so many hours of a clock that stands still but while somebody sleeps; which snapshots are there then, and how long was slept each time, in minutes. */
async function run(hours: number, { keep = 3, there = [], fails = () => false, revision = 7, freeBytesMin, ...given }: { readonly revision?: number; readonly freeBytesMin?: number; readonly every?: string | undefined; readonly keep?: number; readonly there?: readonly string[]; fails?(attempt: number): boolean } = {}) {
  const directory = mkdtempSync(join(tmpdir(), "snapshots-"));
  try {
    const backup = await Array.fromAsync(await backupStream({ list: async () => ({ rows: [], revision: 7 }) } as never));
    for (const name of there) writeFileSync(join(directory, name), Buffer.concat(backup as Buffer[]));
    const stop = new AbortController();
    let nowMs = START_MS;
    const slept: number[] = [];
    const clock = {
      nowMs: () => nowMs,
      after: () => ({ cancel() {} }),
      sleep(ms: number) {
        slept.push(ms / 60_000);
        nowMs += ms;
        if (nowMs > START_MS + hours * HOUR_MS) stop.abort();
        return Promise.resolve();
      },
    } as unknown as Clock;
    const every = "every" in given ? given.every : "12h";
    let attempts = 0;
    const take = async () => {
      if (fails(++attempts)) throw new Error("no room");
      return await backupStream({ list: async () => ({ rows: [], revision: 7 }) } as never);
    };
    const [part] = snapshotSchedule({ settings: { snapshotEvery: every, snapshotKeep: keep }, isShared: false, directory, ...(freeBytesMin !== undefined && { freeBytesMin }), revision: () => revision, take, clock, log: silentLog });
    await part!.run(stop.signal, () => undefined);
    return { names: readdirSync(directory).sort().map((name) => name.slice("snapshot-2026".length, -".zst".length)), slept };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test("two that are taken in one second, by whomever, are two files", async () => {
  const directory = mkdtempSync(join(tmpdir(), "snapshots-"));
  try {
    expect((await Promise.all([1, 2].map(() => newSnapshotFile(directory, START_MS)))).map((path) => basename(path)).sort()).toEqual(["snapshot-20260301T120000Z-2.zst", "snapshot-20260301T120000Z.zst"]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("of those of one second the last is the newest, and the first is older than it, not of a clock that was wrong", async () => {
  const directory = mkdtempSync(join(tmpdir(), "snapshots-")), [before, first, second, tenth] = ["20260301T110000Z", "20260301T120000Z", "20260301T120000Z-2", "20260301T120000Z-10"].map((at) => `snapshot-${at}.zst`);
  try {
    for (const name of [before, first, second, tenth]) writeFileSync(join(directory, name!), "");
    expect(await newestSnapshot(directory, START_MS)).toBe(tenth);
    expect(await pruneSnapshots(directory, 3, join(directory, tenth!))).toEqual([before]);
    expect(await pruneSnapshots(directory, 2)).toEqual([first]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("the first soon after the start, then one each time; the newest are kept", async () => {
  expect(await run(40)).toEqual({ names: ["0302T000100Z", "0302T120100Z", "0303T000100Z"], slept: [1, 720, 720, 720, 720] });
});

test("counted from the newest that is there: a restart neither adds one nor leaves one out", async () => {
  expect((await run(8, { there: ["snapshot-20260301T080000Z.zst"] })).names).toEqual(["0301T080000Z", "0301T200000Z"]);
  expect((await run(1, { there: ["snapshot-20260227T080000Z.zst"] })).names).toEqual(["0227T080000Z", "0301T120100Z"]);
});

test("of a store that was restored or mended since the newest was taken there is one soon", async () => {
  expect((await run(8, { there: ["snapshot-20260301T080000Z.zst"], revision: 1_000_000_010 })).names).toEqual(["0301T080000Z", "0301T120100Z"]);
  expect((await run(8, { there: ["snapshot-20260301T080000Z.zst"], revision: 100_000_007 })).names).toEqual(["0301T080000Z", "0301T200000Z"]);
});

test("one of a clock that was wrong keeps none away, and makes room for the next", async () => {
  expect((await run(13, { there: ["snapshot-20300101T000000Z.zst"] })).slept).toEqual([1, 720, 720]);
  expect((await run(13, { keep: 2, there: ["snapshot-20260301T080000Z.zst", "snapshot-20260401T000000Z.zst", "snapshot-20260402T000000Z.zst"] })).names).toEqual(["0301T080000Z", "0301T200000Z"]);
});

test("the one that was just taken is kept, those that are of a later time are the oldest, and what a loss of power has left goes", async () => {
  const there = ["2030", "2031", "2032"].map((year) => `snapshot-${year}0101T000000Z.zst`);
  const directory = mkdtempSync(join(tmpdir(), "snapshots-"));
  try {
    const made = "snapshot-20260301T120000Z.zst";
    const torn = ["snapshot-20260101T000000Z.zst.partial", "snapshot-20330101T000000Z.zst.partial"];
    for (const name of [...there, made, ...torn, "mine.partial"]) writeFileSync(join(directory, name), "");
    expect(await pruneSnapshots(directory, 2, join(directory, made))).toEqual([there[0], there[1], torn[0]]);
    expect(readdirSync(directory).sort()).toEqual(["mine.partial", made, there[2], torn[1]]);
    const next = "snapshot-20260301T130000Z.zst";
    writeFileSync(join(directory, next), "");
    expect(await pruneSnapshots(directory, 2, join(directory, next))).toEqual([there[2]]);
    expect(await pruneSnapshots(directory, 1)).toEqual([made]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("what fails is tried again after ten minutes", async () => {
  expect(await run(1, { fails: (attempt) => attempt < 3 })).toEqual({ names: ["0301T122100Z"], slept: [1, 10, 10, 720] });
});

test("none takes the last room of the disk: the older ones stay, nothing is left of it, and it is tried again", async () => {
  expect(await run(8, { there: ["snapshot-20260301T010000Z.zst"], freeBytesMin: Number.MAX_SAFE_INTEGER })).toEqual({ names: ["0301T010000Z"], slept: [1, 59, ...Array.from({ length: 43 }, () => 10)] });
});

test("each day by default, but not of etcd; 0: never", async () => {
  expect((await run(50, { every: undefined })).slept).toEqual([1, 1440, 1440, 1440]);
  const parts = (snapshotEvery: string | undefined, isShared: boolean) => snapshotSchedule({ settings: { snapshotEvery, snapshotKeep: 5 }, isShared, directory: "/nowhere", revision: () => 0, take: () => Promise.reject(new Error("not asked")), clock: {} as unknown as Clock, log: silentLog });
  expect([parts(undefined, false), parts(undefined, true), parts("0", false), parts("12h", true)].map(({ length }) => length)).toEqual([1, 0, 0, 1]);
});

test.each(["often", "00", "30s", "-1h"])("--snapshot-every %s is refused", (every) => {
  expect(() => snapshotSchedule({ settings: { snapshotEvery: every, snapshotKeep: 5 }, isShared: false, directory: "/nowhere", revision: () => 0, take: () => Promise.reject(new Error("not asked")), clock: {} as unknown as Clock, log: silentLog })).toThrow(/must be a time such as 30m, 12h or 7d/);
});

test("a directory that cannot be read is looked at again, and ends nothing", async () => {
  const directory = join(mkdtempSync(join(tmpdir(), "snapshots-")), "a-file");
  writeFileSync(directory, "as good as a stick that was pulled out");
  const stop = new AbortController(), slept: number[] = [];
  let nowMs = START_MS;
  const clock = { nowMs: () => nowMs, after: () => ({ cancel() {} }), sleep(ms: number) { slept.push(ms / 60_000); nowMs += ms; if (slept.length === 4) stop.abort(); return Promise.resolve(); } } as unknown as Clock;
  const [part] = snapshotSchedule({ settings: { snapshotEvery: "12h", snapshotKeep: 3 }, isShared: false, directory, revision: () => 7, take: () => backupStream({ list: async () => ({ rows: [], revision: 7 }) } as never), clock, log: silentLog });
  await part!.run(stop.signal, () => undefined);
  expect(slept).toEqual([1, 10, 10, 10]);
});

test("of what is none in the directory, or goes while it is looked at, nothing is told, and nothing is kept from its place by it", async () => {
  const directory = mkdtempSync(join(tmpdir(), "snapshots-")), snapshots = join(directory, "server", "snapshots");
  const lines: string[] = [];
  const { log } = console;
  try {
    mkdirSync(join(snapshots, "snapshot-20260101T000000Z.zst"), { recursive: true });
    symlinkSync("/nowhere", join(snapshots, "snapshot-20260102T000000Z.zst"));
    writeFileSync(join(snapshots, "snapshot-20260103T000000Z.zst"), "cut off");
    console.log = (line: string) => void lines.push(line);
    expect(await snapshot(["list", "--data-dir", directory])).toBe(0);
    expect(lines.map((line) => line.split(/ +/)[0])).toEqual(["NAME", "snapshot-20260103T000000Z.zst"]);
    await expect(snapshot(["restore", "snapshot-20260101T000000Z.zst", "--data-dir", directory])).rejects.toMatchObject({ fields: { reason: "it is a directory" } });
    expect(await pruneSnapshots(snapshots, 1)).toEqual(["snapshot-20260102T000000Z.zst"]);
  } finally {
    console.log = log;
    rmSync(directory, { recursive: true });
  }
});

test("what is restored where the store is gone goes on behind all snapshots that are there", async () => {
  const directory = mkdtempSync(join(tmpdir(), "snapshots-")), snapshots = join(directory, "server", "snapshots"), path = join(directory, "server", "db");
  using _ = vi.spyOn(console, "log").mockReturnValue();
  try {
    for (const [name, revision] of [["1", 7], ["2", 5_000_000_000], ["3", 9]] as const) await saveBackup(await backupStream({ list: async () => ({ rows: [], revision }) } as never), join(snapshots, `snapshot-2026010${name}T000000Z.zst`));
    writeFileSync(join(snapshots, "snapshot-20260104T000000Z.zst"), "cut off");
    expect(await snapshot(["restore", "snapshot-20260101T000000Z.zst", "--data-dir", directory, "--keep-keys"])).toBe(0);
    expect((await checkStore(path)).revision).toBeGreaterThan(5_000_000_000);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test.skipIf(!hasFuse())("a directory on a disk that does not answer holds up nobody, is told of, and is not waited for at the end", async () => {
  using silent = silentFileSystem();
  const stop = new AbortController(), told = Promise.withResolvers<string>();
  const clock = { nowMs: () => START_MS, after(_: number, work: () => void) { setTimeout(work); return { cancel() {} }; }, sleep: () => Promise.resolve() } as unknown as Clock;
  const [part] = snapshotSchedule({ settings: { snapshotEvery: "12h", snapshotKeep: 3 }, isShared: false, directory: silent.path, revision: () => 7, take: () => backupStream({ list: async () => ({ rows: [], revision: 7 }) } as never), clock, log: { ...silentLog, error: (message) => told.resolve(message) } });
  const ended = part!.run(stop.signal, () => undefined);
  expect(await told.promise).toMatch(/^the directory of snapshots does not answer/);
  stop.abort();
  await ended;
});
