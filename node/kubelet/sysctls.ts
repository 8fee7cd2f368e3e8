/**
 * Kernel parameters of pods: which may be set, where, and how they are written. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/sysctl/{allowlist,safe_sysctls}.go, component-helpers/node/util/sysctl, pkg/apis/policy/validation (IsValidSysctlPattern)
 */
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { isHostNetwork } from "./pod-spec.ts";

/** Isolated, and without influence on any other pod. */
const SAFE: readonly string[] = [
  "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports",
  "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
];

type Namespace = "IPC" | "Net";

/** "kernel.shm" and "kernel.msg" stand for patterns that begin so. */
const OF_IPC: ReadonlySet<string> = new Set(["kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg"]);

const PATTERN = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]$/;
const PATTERN_SHOWN = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]";
const LENGTH_MAX = 253;

/** With dots between its parts: net/ipv4/conf/eth0.1/forwarding is net.ipv4.conf.eth0/1.forwarding. */
export function sysctlName(name: string): string {
  return /[./]/.exec(name)?.[0] === "/" ? name.replace(/[./]/g, (sign) => (sign === "/" ? "." : "/")) : name;
}

function namespaceOf(name: string): Namespace | undefined {
  if (OF_IPC.has(name) || name.startsWith("fs.mqueue.")) return "IPC";
  return name.startsWith("net.") ? "Net" : undefined;
}

/** What stands before a pattern's "*". */
function prefixOf(pattern: string): string { return sysctlName(pattern).split("*")[0]!; }

/** Why a node cannot allow such ones; undefined: it can. */
export function allowedSysctlProblem(patterns: readonly string[]): string | undefined {
  for (const pattern of patterns) {
    if (pattern.length > LENGTH_MAX || !PATTERN.test(pattern)) return `sysctl ${JSON.stringify(pattern)} must have at most ${LENGTH_MAX} characters and match regex ${PATTERN_SHOWN}`;
    if (!namespaceOf(prefixOf(pattern))) return `the sysctls ${JSON.stringify(prefixOf(pattern))} are not known to be namespaced`;
  }
  return undefined;
}

/** Why the pod must not set what it wants to; undefined: it may. `allowed`: patterns beside what is safe. */
export function sysctlProblem(pod: Pod, allowed: readonly string[]): string | undefined {
  for (const { name: written } of pod.spec.securityContext?.sysctls ?? []) {
    const name = sysctlName(written);
    const rule = [...SAFE, ...allowed].find((pattern) => (pattern.includes("*") ? name.startsWith(prefixOf(pattern)) : sysctlName(pattern) === name));
    if (rule === undefined) return `${JSON.stringify(name)} not allowlisted`;
    const namespace = namespaceOf(prefixOf(rule));
    if (namespace === "IPC" ? pod.spec.hostIPC : namespace === "Net" && isHostNetwork(pod)) return `${JSON.stringify(name)} not allowed with host ${namespace} enabled`;
  }
  return undefined;
}
