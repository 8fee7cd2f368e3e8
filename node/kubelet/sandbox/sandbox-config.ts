/** What the runtime is told about a sandbox. Source: kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_sandbox.go */
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { DNSConfig, IDMapping, LinuxPodSandboxConfig, PodSandboxConfig, PortMapping, Protocol, UserNamespace } from "../../cri/gen/runtime.v1.ts";
import type { OperatingSystem } from "../../os/machine.ts";
import { podLabels } from "../containers/labels.ts";
import { isPrivileged, namespacesOf } from "../containers/security-context.ts";
import { windowsSandbox } from "../containers/windows-container.ts";
import { isHostNetwork } from "../pod-spec.ts";
import { type SandboxMachine, sandboxResources } from "../resources/linux-resources.ts";
import { sysctlName } from "../sysctls.ts";
import type { PodHostname } from "./hostname.ts";

export interface SandboxFacts {
  readonly os: OperatingSystem;
  readonly machine?: SandboxMachine | undefined;
  readonly pod: Pod;
  readonly attempt: number;
  readonly dns: DNSConfig;
  readonly hostname: PodHostname;
  readonly logDirectory: string;
  readonly cgroupParent: string;
  /** Ranges of ids on the host for a pod with a user namespace of its own. */
  readonly userNamespace: { readonly hostId: number; readonly length: number } | undefined;
}

/** Throws an Error for the user. */
export function sandboxConfig(facts: SandboxFacts): PodSandboxConfig {
  const { os, pod, attempt, dns, hostname, logDirectory } = facts;
  const ports = portMappings(pod);
  return {
    metadata: { name: pod.metadata.name, namespace: pod.metadata.namespace ?? "", uid: pod.metadata.uid, attempt },
    labels: podLabels(pod), annotations: { ...pod.metadata.annotations }, log_directory: logDirectory, dns_config: dns,
    ...(isHostNetwork(pod) ? {} : { hostname: hostname.kernelName }), ...(ports.length > 0 ? { port_mappings: ports } : {}),
    ...(os === "windows" ? { windows: windowsSandbox(pod) } : { linux: linuxSandbox(facts) }),
  };
}

function linuxSandbox({ machine, pod, cgroupParent, userNamespace }: SandboxFacts): LinuxPodSandboxConfig {
  const { runAsUser, runAsGroup, fsGroup, supplementalGroups = [], supplementalGroupsPolicy, seLinuxOptions, sysctls = [] } = pod.spec.securityContext ?? {};
  const { resources, overhead } = sandboxResources(pod, machine);
  return {
    cgroup_parent: cgroupParent, resources, overhead, sysctls: Object.fromEntries(sysctls.map(({ name, value }) => [sysctlName(name), value])),
    security_context: {
      privileged: isPrivileged(pod), seccomp: { profile_type: "RuntimeDefault" },
      namespace_options: { ...namespacesOf(pod), ...(userNamespace ? { userns_options: userNamespaceOptions(userNamespace) } : {}) },
      supplemental_groups: [...(fsGroup === undefined ? [] : [fsGroup]), ...supplementalGroups], supplemental_groups_policy: supplementalGroupsPolicy,
      ...(runAsUser === undefined ? {} : { run_as_user: { value: runAsUser } }), ...(runAsGroup === undefined ? {} : { run_as_group: { value: runAsGroup } }),
      ...(seLinuxOptions ? { selinux_options: seLinuxOptions } : {}),
    },
  };
}

export function mappedIds({ hostId, length }: { readonly hostId: number; readonly length: number }): IDMapping[] {
  return [{ host_id: hostId, container_id: 0, length }];
}

export function userNamespaceOptions(range: { readonly hostId: number; readonly length: number }): UserNamespace {
  return { mode: "POD", uids: mappedIds(range), gids: mappedIds(range) };
}

function portMappings(pod: Pod): PortMapping[] {
  if (isHostNetwork(pod)) return [];
  const containers = [...(pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always"), ...pod.spec.containers];
  return containers.flatMap(({ ports = [] }) => ports.filter(({ hostPort }) => hostPort).map(({ hostPort, containerPort, protocol, hostIP }) => ({
    host_port: hostPort, container_port: containerPort, protocol: (protocol ?? "TCP") as Protocol, ...(hostIP ? { host_ip: hostIP } : {}),
  })));
}
