/** Control groups, as far as this machine has them: without any there are no containers, and a machine that lacks a controller is worth a word. */
import { readFileSync } from "node:fs";
import type { Log } from "../core/observe/log.ts";
import { availableControllers } from "../node/os/cgroup.ts";
import { ConfigError } from "./config/config.ts";

/** What limits of pods rest on. Upstream's kubelet does not start without some of them: container_manager_linux.go validateSystemRequirements. */
const WANTED = ["cpu", "memory", "pids"] as const;

/** Throws ConfigError. */
export function checkCgroups(log: Log, mountinfo = readFileSync("/proc/self/mountinfo", "utf8")): void {
  const available = availableControllers(mountinfo);
  if (available.length === 0) throw new ConfigError("there are no control groups at /sys/fs/cgroup, and without them no containers: mount them (mount -t cgroup2 cgroup2 /sys/fs/cgroup); in a container, run that as privileged");
  const missing = WANTED.filter((name) => !available.includes(name));
  if (missing.length > 0) log.warn("this kernel has controllers of control groups switched off: what pods may use of these is not limited. On a Raspberry Pi, cgroup_enable=memory in /boot/firmware/cmdline.txt switches memory on", { missing });
}
