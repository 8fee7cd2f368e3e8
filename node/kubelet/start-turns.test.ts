import { expect, test } from "vitest";
import { startsAtATime, startTurns } from "./start-turns.ts";

const GIB = 1024 ** 3;

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Starts by name, each of which goes on until it is told to end, and a clock that stands. */
function runtime(max: number) {
  const under: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const timers = new Set<() => void>();
  const clock = { after: (_: number, work: () => void) => { timers.add(work); return { cancel: () => void timers.delete(work) }; } };
  const turns = startTurns({ max, clock });
  const never = new AbortController().signal;
  return {
    under, timers,
    start: (name: string, { signal = never, begun = false } = {}) => turns.run(() => {
      under.push(name);
      return new Promise<string>((resolve, reject) => ends.set(name, (error) => { under.splice(under.indexOf(name), 1); if (error) reject(error); else resolve(name); }));
    }, { signal, begun }),
    async end(name: string, error?: Error) {
      ends.get(name)!(error);
      await settled();
    },
  };
}

test.each([
  [{ cpus: 4, memoryBytes: 0.25 * GIB }, 4], [{ cpus: 1, memoryBytes: 0.5 * GIB }, 2], [{ cpus: 4, memoryBytes: GIB }, 8], [{ cpus: 1, memoryBytes: 0.1 * GIB }, 2], [{ cpus: 64, memoryBytes: 256 * GIB }, 128],
])("a machine of %o starts %i at a time", (machine, starts) => {
  expect(startsAtATime(machine)).toBe(starts);
});

test("so many start at a time; the next is one of a pod that has begun, then whoever came first, whether the one before fails or not", async () => {
  const { under, timers, start, end } = runtime(2);
  const all = [start("a"), start("b"), start("c"), start("d"), start("b's container", { begun: true })].map((one) => one.catch((error: Error) => error.message));
  await settled();
  expect(under).toEqual(["a", "b"]);
  await end("b");
  expect(under).toEqual(["a", "b's container"]);
  await end("a", new Error("no such image"));
  expect(under).toEqual(["b's container", "c"]);
  await end("b's container");
  await end("c");
  await end("d");
  expect(await Promise.all(all)).toEqual(["no such image", "b", "c", "d", "b's container"]);
  expect(timers.size).toBe(0);
});

test("one that hangs keeps the others waiting for a while only, and gives its turn on once", async () => {
  const { under, timers, start, end } = runtime(1);
  const all = ["a", "b", "c"].map((name) => start(name));
  await settled();
  for (const late of [...timers]) late();
  await settled();
  expect(under).toEqual(["a", "b"]);
  await end("a");
  expect(under).toEqual(["b"]);
  await end("b");
  await end("c");
  await Promise.all(all);
});

test("whoever is no longer wanted does not take a turn", async () => {
  const { under, start, end } = runtime(1);
  const quit = new AbortController();
  const first = start("a"), second = start("b", { signal: quit.signal }), third = start("c");
  await settled();
  quit.abort(new Error("deleted"));
  await expect(second).rejects.toThrow("deleted");
  await end("a");
  expect(under).toEqual(["c"]);
  await end("c");
  await Promise.all([first, third]);
});
