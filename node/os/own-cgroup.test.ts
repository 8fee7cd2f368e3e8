import { expect, test } from "vitest";
import { cgroupOf } from "./own-cgroup.ts";

test.each([
  ["0::/system.slice/coracle.service\n", "/system.slice/coracle.service"],
  ["0::/a:b\n", "/a:b"],
  ["9:name=systemd:/system.slice/coracle.service\n4:memory:/\n3:cpu,cpuacct:/\n0::/\n", "/system.slice/coracle.service"],
  ["4:memory:/pods\n3:cpu,cpuacct:/pods\n", "/pods"],
  ["4:memory:/one\n1:cpu:/other\n0::/\n", undefined],
  ["4:memory:/\n", undefined],
])("%j is %s", (text, group) => expect(cgroupOf(text)).toBe(group));
