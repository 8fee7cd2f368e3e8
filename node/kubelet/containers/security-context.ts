/**
 * Who a container runs as and what it may do: the container's own settings over the pod's, as CRI has them.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kuberuntime/{security_context,security_context_others,helpers}.go, pkg/securitycontext/util.go
 */
import { join } from "node:path";
import type { AppArmorProfile, Container, EphemeralContainer, Pod, SeccompProfile, SecurityContext } from "../../../core/api/gen/core.v1.ts";
import { rangeMessage } from "../../../core/api/meta/names.ts";
import type { Capability, LinuxContainerSecurityContext, NamespaceOption, SecurityProfile } from "../../cri/gen/runtime.v1.ts";
import { allContainers, formatPod } from "../pod-spec.ts";

const MASKED_PATHS: readonly string[] = [
  "/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
  "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
];
const READONLY_PATHS: readonly string[] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/** The image's user: a number (0 when the image says nothing), or a name that only the image can resolve. */
export interface ImageUser { readonly uid: number | undefined; readonly username: string }

export interface SecurityFacts {
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  readonly imageUser: ImageUser;
  readonly namespaces: NamespaceOption;
  /** Of the pod's volumes: its processes are of them, too. */
  readonly volumeGroups: readonly number[];
  readonly seccompDir: string;
  readonly seccompDefault: boolean;
  /** What containers do not see on this machine, besides what they see on none. */
  readonly maskedPaths: readonly string[];
}

export function effectiveSecurityContext(pod: Pod, container: Container | EphemeralContainer): SecurityContext {
  const { seLinuxOptions, windowsOptions, runAsUser, runAsGroup, runAsNonRoot } = pod.spec.securityContext ?? {};
  const fromPod = { seLinuxOptions, windowsOptions, runAsUser, runAsGroup, runAsNonRoot };
  const own = Object.fromEntries(Object.entries(container.securityContext ?? {}).filter(([, value]) => value !== undefined));
  return { ...fromPod, ...own };
}

export function containerSecurityContext(facts: SecurityFacts): LinuxContainerSecurityContext {
  const { pod, container, imageUser, namespaces, volumeGroups } = facts;
  const effective = effectiveSecurityContext(pod, container);
  const { runAsUser, runAsGroup, privileged, readOnlyRootFilesystem, allowPrivilegeEscalation, procMount, seLinuxOptions } = effective;
  const { fsGroup, supplementalGroups = [], supplementalGroupsPolicy } = pod.spec.securityContext ?? {};
  const unmasked = procMount === "Unmasked";
  const apparmor = appArmorProfile(pod, container);
  return {
    capabilities: capabilitiesOf(effective), privileged, readonly_rootfs: readOnlyRootFilesystem, namespace_options: namespaces,
    ...(runAsUser === undefined ? { ...(imageUser.uid === undefined ? {} : { run_as_user: { value: imageUser.uid } }), run_as_username: imageUser.username } : { run_as_user: { value: runAsUser } }),
    ...(runAsGroup === undefined ? {} : { run_as_group: { value: runAsGroup } }), ...(seLinuxOptions ? { selinux_options: seLinuxOptions } : {}),
    supplemental_groups: [...(fsGroup === undefined ? [] : [fsGroup]), ...supplementalGroups, ...new Set(volumeGroups.filter((group) => !supplementalGroups.includes(group)))], supplemental_groups_policy: supplementalGroupsPolicy,
    no_new_privs: allowPrivilegeEscalation === false, masked_paths: unmasked ? [] : [...MASKED_PATHS, ...facts.maskedPaths], readonly_paths: unmasked ? [] : [...READONLY_PATHS],
    seccomp: seccompProfile(facts), ...(apparmor ? { apparmor } : {}),
  };
}

function capabilitiesOf({ capabilities }: SecurityContext): Capability | undefined {
  return capabilities && { add_capabilities: capabilities.add ?? [], drop_capabilities: capabilities.drop ?? [] };
}

function seccompProfile({ pod, container, seccompDir, seccompDefault }: SecurityFacts): SecurityProfile {
  const profile: SeccompProfile | undefined = container.securityContext?.seccompProfile ?? pod.spec.securityContext?.seccompProfile;
  if (!profile) return { profile_type: seccompDefault ? "RuntimeDefault" : "Unconfined" };
  if (profile.type !== "Localhost") return { profile_type: profile.type };
  if (!profile.localhostProfile) throw new Error("localhostProfile must be set if seccompProfile type is Localhost.");
  return { profile_type: "Localhost", localhost_ref: join(seccompDir, profile.localhostProfile) };
}

const APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/";

/** Whether a profile of AppArmor is asked for, by the pod or any of its containers. */
export function wantsAppArmor({ metadata: { annotations = {} }, spec }: Pod): boolean {
  const legacy = Object.keys(annotations).filter((key) => key.startsWith(APPARMOR_ANNOTATION)).map((key) => fromAnnotation(annotations[key]));
  const own = [spec, ...allContainers(spec).map(({ container }) => container)].map(({ securityContext }) => securityContext?.appArmorProfile);
  return [...own, ...legacy].some((profile) => profile !== undefined && profile.type !== "Unconfined");
}

function appArmorProfile(pod: Pod, container: Container | EphemeralContainer): SecurityProfile | undefined {
  const legacy = pod.metadata.annotations?.[APPARMOR_ANNOTATION + container.name];
  const profile: AppArmorProfile | undefined = container.securityContext?.appArmorProfile ?? fromAnnotation(legacy) ?? pod.spec.securityContext?.appArmorProfile; // what is said of one goes before what is said of all
  if (!profile) return undefined;
  if (profile.type !== "Localhost") return { profile_type: profile.type as "RuntimeDefault" | "Unconfined" };
  if (!profile.localhostProfile) throw new Error("missing localhost apparmor profile name");
  return { profile_type: "Localhost", localhost_ref: profile.localhostProfile };
}

function fromAnnotation(text: string | undefined): AppArmorProfile | undefined {
  if (text === "runtime/default") return { type: "RuntimeDefault" };
  if (text === "unconfined") return { type: "Unconfined" };
  return text?.startsWith("localhost/") ? { type: "Localhost", localhostProfile: text.slice("localhost/".length) } : undefined;
}

const USER_ID_MAX = 2_147_483_647;

/** Throws when the container must not run as root and would, or might. */
export function verifyNonRoot(pod: Pod, container: Container | EphemeralContainer, image: ImageUser): void {
  const { runAsNonRoot, runAsUser } = effectiveSecurityContext(pod, container);
  if (runAsNonRoot !== true) return;
  const where = `pod: "${formatPod(pod)}", container: ${container.name}`;
  if (runAsUser === 0) throw new Error(`container's runAsUser breaks non-root policy (${where})`);
  if (runAsUser !== undefined) return;
  if (image.uid === 0) throw new Error(`container has runAsNonRoot and image will run as root (${where})`);
  if (image.uid !== undefined && (image.uid < 0 || image.uid > USER_ID_MAX)) throw new Error(`container has runAsNonRoot and image has an invalid user id (${image.uid}). (Must be 1-(${USER_ID_MAX})): ${rangeMessage(0, USER_ID_MAX)} (${where})`);
  if (image.uid === undefined) throw new Error(`container has runAsNonRoot and image has non-numeric user (${image.username}), cannot verify user is non-root (${where})`);
}

/** Namespaces shared with the node, the pod or another container. `targetId`: for an ephemeral container that looks at another one. */
export function namespacesOf(pod: Pod, targetId?: string): NamespaceOption {
  const { hostNetwork, hostPID, hostIPC, shareProcessNamespace } = pod.spec;
  const pid = hostPID ? "NODE" : shareProcessNamespace ? "POD" : "CONTAINER";
  return {
    network: hostNetwork ? "NODE" : "POD", ipc: hostIPC ? "NODE" : "POD", pid: pid === "CONTAINER" && targetId ? "TARGET" : pid, ...(pid === "CONTAINER" && targetId ? { target_id: targetId } : {}),
  };
}

export function isPrivileged(pod: Pod): boolean {
  return [...pod.spec.containers, ...(pod.spec.initContainers ?? []), ...(pod.spec.ephemeralContainers ?? [])].some(({ securityContext }) => securityContext?.privileged === true);
}
