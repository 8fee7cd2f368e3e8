/**
 * How much memory this process may have, by its control group and those around it: a service in a container of less memory than its machine has no limit of its own.
 *
 * API: https://docs.kernel.org/admin-guide/cgroup-v2.html memory.max, https://docs.kernel.org/admin-guide/cgroup-v1/memory.html memory.limit_in_bytes
 */
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { ifThereSync } from "../../core/lifecycle/if-there.ts";
import { type Cgroups, systemCgroups } from "./cgroup.ts";

/** In bytes. Infinity: all there is. */
export function memoryLimit(): number {
  const membership = ifThereSync(() => readFileSync("/proc/self/cgroup", "utf8"));
  return membership === undefined ? Infinity : limitOf(membership, systemCgroups());
}

/** `membership`: the text of /proc/self/cgroup. */
export function limitOf(membership: string, cgroups: Pick<Cgroups, "version" | "text">): number {
  const own = cgroups.version === 2 ? /^0::(\/.*)$/m : /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(\/.*)$/m;
  let path = own.exec(membership)?.[1], bytes = Infinity;
  for (; path !== undefined; path = path === "/" ? undefined : dirname(path)) {
    const limit = Number(cgroups.text(path, "memory", cgroups.version === 2 ? "memory.max" : "memory.limit_in_bytes")); // "max": none
    if (limit > 0) bytes = Math.min(bytes, limit);
  }
  return bytes;
}
