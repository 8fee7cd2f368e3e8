import { expect, test } from "vitest";
import { checkCgroups } from "./usable-cgroups.ts";

const legacy = (...controllers: readonly string[]): string => controllers.map((name, i) => `3${i} 25 0:3${i} / /sys/fs/cgroup/${name} rw,nosuid - cgroup cgroup rw,${name}\n`).join("");

function warnings(mountinfo: string): unknown[] {
  const said: unknown[] = [];
  checkCgroups({ warn: (_: string, facts: unknown) => void said.push(facts) } as never, mountinfo);
  return said;
}

test("no control groups, or systemd's alone: no node", () => {
  for (const mountinfo of ["25 1 8:1 / / rw - ext4 /dev/sda1 rw\n", "30 25 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"]) expect(() => checkCgroups({} as never, mountinfo)).toThrow("there are no control groups at /sys/fs/cgroup");
});

test("what cannot be limited is said", () => {
  expect(warnings(legacy("cpu", "memory", "pids"))).toEqual([]);
  expect(warnings(legacy("cpu", "cpuset", "pids"))).toEqual([{ missing: ["memory"] }]);
});
