import { expect, test } from "vitest";
import type { NodeStatus } from "../../../core/api/gen/core.v1.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import type { MachineInfo } from "../../os/machine.ts";
import { KUBELET_DEFAULTS, type KubeletSettings } from "../settings.ts";
import { StatusReport } from "./status-report.ts";

test("two machines that are one node, of one data directory that was copied, both say so, once for a while, and what to do", async () => {
  const { client } = fakeApi(), stop = new AbortController();
  const told: string[] = [], events: string[] = [];
  let reports = 0;
  const report = (bootId: string): StatusReport => new StatusReport({
    settings: { ...KUBELET_DEFAULTS, nodeName: "n", hostname: "host", statusMs: 10 } as KubeletSettings, client, clock: systemClock,
    machine: { os: "linux", architecture: "amd64", bootId } as unknown as MachineInfo,
    log: { ...silentLog, error: (message, fields) => void told.push(`${String(fields?.["ours"])}: ${message} ${String(fields?.["at"])}`) }, events: { event: (_, __, reason, message) => void events.push(`${bootId} ${reason}: ${message}`) },
    measure: async () => undefined, lookAtImages: async () => undefined, statusAfter: async () => ({ nodeInfo: { bootID: bootId }, addresses: [{ type: "InternalIP", address: `${bootId}'s address` }, { type: "Hostname", address: "n" }] }) as NodeStatus, onReported: () => void reports++,
  });
  const one = report("one").run(stop.signal, () => undefined);
  await eventually(() => reports, (count) => count > 3);
  expect(told).toEqual([]);
  const two = report("two").run(stop.signal, () => undefined);
  await eventually(() => told.length, (count) => count === 2);
  await systemClock.sleep(100, stop.signal);
  stop.abort();
  await Promise.all([one, two]);
  const todo = "stop one of the two, remove its data directory, and join it under another name";
  const words = `another machine says that it is this node, too: ${todo}`;
  expect(told.toSorted()).toEqual([`one: ${words} two's address`, `two: ${words} one's address`]);
  expect(events.filter((event) => event.includes(" NodeDoubled: ")).toSorted()).toEqual([["one", "two"], ["two", "one"]].map(([ours, theirs]) => `${ours} NodeDoubled: Another machine (at ${theirs}'s address, boot id ${theirs}) says that it is node n, too: ${todo}`));
});
