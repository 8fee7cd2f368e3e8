/**
 * What the runtime is told about pods and containers on Windows: users by name, limits of job objects, HostProcess containers; nothing of what only Linux has. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kuberuntime/{kuberuntime_container_windows,security_context_windows,kuberuntime_sandbox}.go, pkg/volume/util/util.go (MakeAbsolutePath)
 */
import type { Container, EphemeralContainer, Pod, WindowsSecurityContextOptions } from "../../../core/api/gen/core.v1.ts";
import { parseQuantity } from "../../../core/api/meta/quantity.ts";
import type { WindowsContainerConfig, WindowsContainerResources, WindowsPodSandboxConfig } from "../../cri/gen/runtime.v1.ts";
import { allContainers, formatPod, isHostNetwork } from "../pod-spec.ts";

/** The one that counts as root. Names of users are the same in any case on Windows. */
const ADMINISTRATOR = "ContainerAdministrator";
/** Where a container has its hosts file. */
export const WINDOWS_HOSTS_PATH = "C:\\Windows\\System32\\drivers\\etc\\hosts";
const CPU_MAXIMUM = { min: 1, max: 10_000 };

/** The container's options over the pod's, one by one. */
function optionsOf(pod: Pod, container: Container | EphemeralContainer): WindowsSecurityContextOptions {
  const own = Object.fromEntries(Object.entries(container.securityContext?.windowsOptions ?? {}).filter(([, value]) => value !== undefined));
  return { ...pod.spec.securityContext?.windowsOptions, ...own };
}

/** Any of its containers runs on the host itself. */
export function hasHostProcess(pod: Pod): boolean {
  return allContainers(pod.spec).some(({ container }) => optionsOf(pod, container).hostProcess === true);
}

/** Throws an Error for the user. */
export function windowsSandbox(pod: Pod): WindowsPodSandboxConfig {
  const { gmsaCredentialSpec, runAsUserName, hostProcess } = pod.spec.securityContext?.windowsOptions ?? {};
  const onHost = hasHostProcess(pod);
  if (onHost) {
    if (!allContainers(pod.spec).every(({ container }) => optionsOf(pod, container).hostProcess === true)) throw new Error("pod must not contain both HostProcess and non-HostProcess containers");
    if (!isHostNetwork(pod)) throw new Error("hostNetwork is required if Pod contains HostProcess containers");
    if (hostProcess === false) throw new Error("pod must not contain any HostProcess containers if Pod's WindowsOptions.HostProcess is set to false");
  }
  return {
    security_context: { ...(onHost ? { host_process: true } : {}), ...(gmsaCredentialSpec === undefined ? {} : { credential_spec: gmsaCredentialSpec }), ...(runAsUserName === undefined ? {} : { run_as_username: runAsUserName }) },
  };
}

/** `imageUser`: whom the image names, "" if it does not. `cpus`: of this machine. */
export function windowsContainer(pod: Pod, container: Container | EphemeralContainer, { imageUser, cpus }: { readonly imageUser: string; readonly cpus: number }): WindowsContainerConfig {
  const { gmsaCredentialSpec, runAsUserName = imageUser, hostProcess } = optionsOf(pod, container);
  return {
    resources: windowsResources(container, cpus),
    security_context: { ...(runAsUserName === "" ? {} : { run_as_username: runAsUserName }), ...(gmsaCredentialSpec === undefined ? {} : { credential_spec: gmsaCredentialSpec }), ...(hostProcess === true ? { host_process: true } : {}) },
  };
}

/** The share of all processors, in hundredths of a percent: requests have no counterpart, for a weight would take the limit's place. */
function windowsResources({ resources }: Container | EphemeralContainer, cpus: number): WindowsContainerResources {
  const { cpu, memory } = resources?.limits ?? {};
  const milli = cpu === undefined ? 0 : parseQuantity(cpu).milliNumber();
  const bytes = memory === undefined ? 0 : parseQuantity(memory).number();
  return {
    ...(milli > 0 ? { cpu_maximum: Math.min(CPU_MAXIMUM.max, Math.max(CPU_MAXIMUM.min, Math.floor((10 * milli) / cpus))) } : {}),
    ...(bytes > 0 ? { memory_limit_in_bytes: bytes } : {}),
  };
}

/** Throws when the container must not run as administrator and would. */
export function verifyNotAdministrator(pod: Pod, container: Container | EphemeralContainer, imageUser: string): void {
  if ((container.securityContext?.runAsNonRoot ?? pod.spec.securityContext?.runAsNonRoot) !== true) return;
  const { runAsUserName } = optionsOf(pod, container);
  const [who, what] = runAsUserName === undefined ? [imageUser, "runAsUser"] : [runAsUserName, "runAsUserName"];
  if (who.toLowerCase() === ADMINISTRATOR.toLowerCase()) throw new Error(`container's ${what} (${who}) which will be regarded as root identity and will break non-root policy (pod: "${formatPod(pod)}", container: ${container.name})`);
}

/** A path as Windows containers need it: with a drive. Shares and pipes (\\…) stay as they are. */
export function windowsPath(path: string): string {
  if (path.startsWith("\\\\") || path.includes(":")) return path;
  return /^[\\/]/.test(path) ? `c:${path}` : `c:\\${path}`;
}
