import { expect, test } from "vitest";
import type { CgroupLimits } from "../../os/cgroup.ts";
import { limitReserved, reservedGroups } from "./reserved-groups.ts";

const given = { systemReservedCgroup: "/system.slice", kubeReservedCgroup: "kube", systemReserved: { cpu: "500m", memory: "1Gi", pid: "1000" }, kubeReserved: { cpu: "1", memory: "1Gi" } };

test("groups that the configuration names have what is reserved for them, or only their share of the processors", () => {
  const written: [string, CgroupLimits][] = [];
  const cgroups = { exists: (path: string) => path !== "/gone", ensure: (path: string, limits: CgroupLimits) => void written.push([path, limits]) };
  for (const one of reservedGroups(["pods", "system-reserved", "kube-reserved-compressible"], given)) limitReserved(cgroups, one);
  expect(written).toEqual([["/system.slice", { cpuShares: 512, memoryBytes: 1024 ** 3, pids: 1000 }], ["/kube", { cpuShares: 1024 }]]);
  expect(reservedGroups(["pods"], given)).toEqual([]);
  expect(() => limitReserved(cgroups, { whose: "Kube", path: "gone", reserved: {}, onlyCpu: true })).toThrow('Failed to enforce Kube Reserved Compressible Cgroup Limits on "gone": cgroup ["gone"] has some missing paths');
});
