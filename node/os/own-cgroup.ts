/** The control group that this process is in. */
import { readFileSync } from "node:fs";

/** Throws where there is no /proc. */
export function ownCgroup(): string | undefined { return cgroupOf(readFileSync("/proc/self/cgroup", "utf8")); }

/**
 * Of `text`, a process' file: the group that counts both its processor and its memory. Undefined where each has another.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/container_manager_linux.go (getContainer)
 */
export function cgroupOf(text: string): string | undefined {
  const paths = new Map(text.split("\n").flatMap((line) => {
    const [, controllers = "", ...path] = line.split(":");
    return path.length === 0 ? [] : controllers.split(",").map((controller) => [controller, path.join(":")] as const);
  }));
  const cpu = paths.get("cpu"), memory = paths.get("memory");
  if (cpu === undefined && memory === undefined) return paths.get("");
  return cpu === memory ? paths.get("name=systemd") ?? cpu : undefined;
}
