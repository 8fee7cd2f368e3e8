/** Kernel parameters of a pod: their names, and which of them belong to a namespace the pod does not have. Source: kubernetes v1.36 component-helpers/node/util/sysctl/namespace.go */
import { child, duplicate, type FieldError, index, invalid, required } from "../../../../api/meta/field-error.ts";
import type { PodSpec } from "../../../../api/gen/core.v1.ts";

const SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const NAME = `^(${SEGMENT}[\\./])*${SEGMENT}$`;
const NAME_PATTERN = new RegExp(NAME);
const NAME_LENGTH_MAX = 253;

type Namespace = "ipc" | "net";
const IPC_NAMES: ReadonlySet<string> = new Set([
  "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg",
]);

function namespaceOf(name: string): Namespace | undefined {
  const dotted = normalize(name).split("*", 1)[0]!;
  if (dotted.startsWith("net.")) return "net";
  return IPC_NAMES.has(dotted) || dotted.startsWith("fs.mqueue.") ? "ipc" : undefined;
}

/** Slashes and dots may be swapped: whichever comes first separates. */
function normalize(name: string): string {
  const first = /[./]/.exec(name)?.[0];
  return first === "/" ? name.replace(/[./]/g, (char) => (char === "." ? "/" : ".")) : name;
}

export function* validateSysctls(spec: Readonly<PodSpec>, path: string, allowHost: boolean): Iterable<FieldError> {
  const seen = new Set<string>();
  for (const [i, { name }] of (spec.securityContext?.sysctls ?? []).entries()) {
    const at = child(index(path, i), "name");
    if (!name) yield required(at);
    else if (name.length > NAME_LENGTH_MAX || !NAME_PATTERN.test(name)) yield invalid(at, name, `must have at most ${NAME_LENGTH_MAX} characters and match regex ${NAME}`);
    else if (seen.has(name)) yield duplicate(at, name);
    if (!allowHost) yield* hostSysctl(spec, at, name);
    seen.add(name);
  }
}

function* hostSysctl({ hostNetwork, hostIPC }: Readonly<PodSpec>, path: string, name: string): Iterable<FieldError> {
  const namespace = namespaceOf(name);
  if (hostNetwork && namespace === "net") yield invalid(path, name, "may not be specified when 'hostNetwork' is true");
  else if (hostIPC && namespace === "ipc") yield invalid(path, name, "may not be specified when 'hostIPC' is true");
}

export function hasHostSysctl(spec: Readonly<PodSpec>): boolean {
  return (spec.securityContext?.sysctls ?? []).some(({ name }) => [...hostSysctl(spec, "", name)].length > 0);
}
