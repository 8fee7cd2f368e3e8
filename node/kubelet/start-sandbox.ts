/** Makes a pod's sandbox: its network, its cgroup, its log directory. Source: kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_sandbox.go */
import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { ifThereSync } from "../../core/lifecycle/if-there.ts";
import type { PodSandboxConfig } from "../cri/gen/runtime.v1.ts";
import type { KubeletContext } from "./context.ts";
import { nodeReference } from "./node/node-reference.ts";
import { allContainers, podReference, usesUserNamespace } from "./pod-spec.ts";
import { parseResolvConf, podDns, type Resolver, searchProblem } from "./sandbox/dns.ts";
import { podHostname } from "./sandbox/hostname.ts";
import { noteLogDirectory } from "./logs/log-directories.ts";
import { sandboxConfig } from "./sandbox/sandbox-config.ts";
import { podLogDirectory } from "./volumes/pod-directories.ts";

/** CNI plugins of slow machines take their time. */
const SANDBOX_TIMEOUT_MS = 240_000;

export async function sandboxConfigOf(context: KubeletContext, pod: Pod, attempt: number): Promise<PodSandboxConfig> {
  const { settings, cgroups, machine, placement, userNamespaces, events } = context;
  const { namespace = "", name, uid } = pod.metadata;
  const { config, warnings } = podDns({ pod, host: hostResolver(settings.resolvConf), nodeIps: settings.nodeIps, clusterDns: settings.clusterDns, clusterDomain: settings.clusterDomain });
  for (const { about, reason, message } of warnings) events.event(about === "pod" ? podReference(pod) : nodeReference(settings.nodeName), "Warning", reason, message);
  return sandboxConfig({
    os: machine.os,
    machine: { ...machine, hasOwnCpus: allContainers(pod.spec).some(({ container }) => placement.pinning(pod.metadata.uid, container.name).cpu_quota === -1) }, pod,
    attempt, dns: config, hostname: podHostname(pod, settings.clusterDomain), logDirectory: podLogDirectory(settings.podLogsDir, { namespace, name, uid }),
    cgroupParent: cgroups.pathOf(pod), userNamespace: await userNamespaces.rangeOf(pod),
  });
}

/** What pods cannot have of the host's resolver: said once, whatever pods there are. */
export function tellResolverProblem({ settings: { resolvConf: path, clusterDomain, nodeName }, events }: Pick<KubeletContext, "settings" | "events">): void {
  if (path === "") return;
  const problem = resolverProblem(path, clusterDomain);
  if (problem !== undefined) events.event(nodeReference(nodeName), "Warning", "CheckLimitsForResolvConf", problem);
}

function resolverProblem(path: string, clusterDomain: string): string | undefined {
  try {
    const host = hostResolver(path);
    return host ? searchProblem(host, { path, clusterDomain }) : `open ${path}: no such file or directory`;
  } catch (error) {
    return (error as Error).message; // a directory, or links in a circle: each pod will say so, and the node goes on
  }
}

function hostResolver(path: string): Resolver | undefined {
  return path === "" ? undefined : ifThereSync(() => parseResolvConf(readFileSync(path, "utf8")));
}

/** Throws an Error for the user; the event is recorded by the caller. */
export async function startSandbox(context: KubeletContext, pod: Pod, config: PodSandboxConfig, signal: AbortSignal): Promise<string> {
  const handler = await context.handlers.handlerOf(pod.spec.runtimeClassName, signal);
  if (usesUserNamespace(pod) && !context.handlerFeatures(handler)?.user_namespaces) throw new Error(`can't set \`spec.hostUsers: false\`, ${handler === "" ? "runtime does" : `RuntimeClass handler "${handler}" does`} not support user namespaces`);
  const { namespace = "", name, uid } = pod.metadata;
  await noteLogDirectory(context.settings.dataDir, { namespace, name, uid });
  await mkdir(config.log_directory ?? "", { recursive: true, mode: 0o755 });
  context.cgroups.ensure(pod, { unlimitedCpu: context.placement.hasExclusiveCpus(pod.metadata.uid) });
  context.metrics.startedPods(usesUserNamespace(pod));
  let beganMs = context.clock.uptimeMs();
  let failed = true;
  try {
    const { pod_sandbox_id = "" } = await context.starts.run(() => {
      beganMs = context.clock.uptimeMs();
      return context.cri.call("RuntimeService/RunPodSandbox", { config, runtime_handler: handler }, { signal, timeoutMs: SANDBOX_TIMEOUT_MS });
    }, { signal });
    failed = false;
    return pod_sandbox_id;
  } finally {
    context.metrics.sandboxStarted(handler, (context.clock.uptimeMs() - beganMs) / 1000, failed);
  }
}
