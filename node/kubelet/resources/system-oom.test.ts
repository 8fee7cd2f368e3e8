import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { kernelLog, messageOf } from "../../os/kernel-log.ts";
import { nodeReference } from "../node/node-reference.ts";
import { oomReader, systemOom } from "./system-oom.ts";

const MACHINE = [
  "6,1,2,-;eth0: link up", "4,2,3,-;stress invoked oom-killer: gfp_mask=0x140cca, order=0, oom_score_adj=1000\n SUBSYSTEM=x",
  "6,3,4,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/kubepods/pod1,task=stress,pid=4711,uid=0", "3,4,5,-;Out of memory: Killed process 4711 (stress) total-vm:1kB, anon-rss:1kB",
].map(messageOf);
const GROUP = [
  "stress invoked oom-killer: gfp_mask=0xcc0", "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/c,task=stress,pid=12,uid=0", "Memory cgroup out of memory: Killed process 12 (stress) total-vm:1kB",
];
const fail = (message: string): never => { throw new Error(message); };
const OLD = (limit: string) => ["ruby invoked oom-killer: gfp_mask=0x201da", `Task in /kubepods/a killed as a result of limit of ${limit}`, "Killed process 19667 (ruby 2) total-vm:1kB"];

test("a process that ends because the machine has no memory left is told, one whose group has taken too much is not", () => {
  const victims = (lines: readonly string[]) => { const read = oomReader(); return lines.flatMap((line) => read(line) ?? []); };
  expect(victims([...MACHINE, ...GROUP, ...MACHINE])).toEqual([{ name: "stress", pid: 4711 }, { name: "stress", pid: 4711 }]);
  expect(victims([...OLD("/kubepods/a"), ...OLD("/")])).toEqual([{ name: "ruby 2", pid: 19667 }]);
  expect(victims(["Killed process 1 (by hand)"])).toEqual([]);
});

test("it is an event of the node, also after the log could not be read for once; without a kernel's log nothing is told", async () => {
  const told: string[] = [];
  const stop = new AbortController();
  const looks = [[], "EINVAL", MACHINE] as const;
  const events = { event: (about: { readonly kind?: string | undefined }, type: string, reason: string, message: string) => { told.push(`${about.kind} ${type} ${reason}: ${message}`); stop.abort(); } };
  const deps = { events: events as never, node: nodeReference("n1"), log: silentLog, clock: { ...systemClock, every: async function* (_: number, signal: AbortSignal) { while (!signal.aborted) { yield; await Bun.sleep(1); } } } as never };
  let looked = 0, opened = 0, closed = 0;
  const lines = () => { const found = looks[looked++]!; if (found === "EINVAL") throw new Error(found); return [...found]; };
  await systemOom({ ...deps, open: () => (opened++ === 0 ? fail("EIO") : { lines, close: () => void closed++ }) }).run(stop.signal, () => undefined);
  expect([told, opened, closed]).toEqual([["Node Warning SystemOOM: System OOM encountered, victim process: stress, pid: 4711"], 3, 2]);
  await systemOom({ ...deps, open: () => undefined }).run(stop.signal, () => undefined);
});

test.skipIf(process.platform !== "linux")("a kernel's log that can be opened and never read, as in a container that has something else there, costs no open file each time, and is told of once", async () => {
  const stop = new AbortController(), told: string[] = [];
  const open = (): number => readdirSync("/proc/self/fd").length, before = open();
  const clock = { ...systemClock, every: async function* () { for (let i = 0; i < 20; i++) yield await Bun.sleep(1); } };
  const log = { ...silentLog, error: (message: string) => void told.push(message), warn: (message: string) => void told.push(message) };
  await systemOom({ events: {} as never, node: nodeReference("n1"), log, clock, open: () => kernelLog("/proc") }).run(stop.signal, () => undefined);
  expect([open() - before, told.length]).toEqual([0, 1]);
});
