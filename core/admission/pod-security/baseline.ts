/**
 * The checks of the level "baseline": nothing by which a pod is known to get at its node.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/pod-security-admission/policy/check_*.go
 */
import type { LifecycleHandler, ProbeHandler, SELinuxOptions } from "../../api/gen/core.v1.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { type AnyContainer, badValues, type Check, type Checked, containersNamed, hasUserNamespace, joinQuoted, namesOf, plural, sorted, type Violation } from "./containers.ts";

const APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/";
const APPARMOR_TYPES: ReadonlySet<string> = new Set(["RuntimeDefault", "Localhost"]);

export const appArmorProfile: Check = (checked) => {
  const { setters, values } = badValues<string>(checked, ({ appArmorProfile: profile }) => profile?.type, (type) => !APPARMOR_TYPES.has(type));
  const bad = sorted(values);
  const annotations = sorted(Object.entries(checked.annotations)
    .filter(([name, value]) => name.startsWith(APPARMOR_ANNOTATION) && value !== "" && value !== "runtime/default" && !value.startsWith("localhost/"))
    .map(([name, value]) => `${name}=${goQuote(value)}`));
  if (annotations.length > 0) {
    bad.push(...annotations);
    setters.push(plural("annotation", "annotations", annotations.length));
  }
  if (setters.length === 0) return undefined;
  return { reason: plural("forbidden AppArmor profile", "forbidden AppArmor profiles", bad.length), detail: `${setters.join(" and ")} must not set AppArmor profile type to ${joinQuoted(bad)}` };
};

const DEFAULT_CAPABILITIES: ReadonlySet<string> = new Set([
  "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
]);

export const capabilitiesBaseline: Check = ({ containers }) => {
  const more = ({ securityContext }: AnyContainer): string[] => (securityContext?.capabilities?.add ?? []).filter((capability) => !DEFAULT_CAPABILITIES.has(capability));
  const names = namesOf(containers, (container) => more(container).length > 0);
  if (names.length === 0) return undefined;
  return { reason: "non-default capabilities", detail: `${containersNamed(names)} must not include ${joinQuoted(sorted(containers.flatMap(more)))} in securityContext.capabilities.add` };
};

export const hostNamespaces: Check = ({ spec }) => {
  const shared = (["hostNetwork", "hostPID", "hostIPC"] as const).filter((name) => spec[name]).map((name) => `${name}=true`);
  return shared.length > 0 ? { reason: "host namespaces", detail: shared.join(", ") } : undefined;
};

export const hostPathVolumes: Check = ({ spec }) => {
  const names = (spec.volumes ?? []).filter(({ hostPath }) => hostPath).map(({ name }) => name);
  return names.length > 0 ? { reason: "hostPath volumes", detail: `${plural("volume", "volumes", names.length)} ${joinQuoted(names)}` } : undefined;
};

export const hostPorts: Check = ({ containers }) => {
  const portsOf = ({ ports = [] }: AnyContainer): string[] => (ports ?? []).flatMap(({ hostPort }) => (hostPort ? [String(hostPort)] : []));
  const names = namesOf(containers, (container) => portsOf(container).length > 0);
  if (names.length === 0) return undefined;
  const ports = sorted(containers.flatMap(portsOf));
  return { reason: "hostPort", detail: `${containersNamed(names)} ${plural("uses", "use", names.length)} ${plural("hostPort", "hostPorts", ports.length)} ${ports.join(", ")}` };
};

/** The kubelet would ask any host it can reach. */
export const hostProbesAndLifecycle: Check = ({ containers }) => {
  const hostsOf = ({ livenessProbe, readinessProbe, startupProbe, lifecycle }: AnyContainer): string[] =>
    [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop]
      .flatMap((handler: Readonly<ProbeHandler | LifecycleHandler> | undefined) => [handler?.httpGet?.host, handler?.tcpSocket?.host])
      .filter((host): host is string => !!host);
  const names = sorted(namesOf(containers, (container) => hostsOf(container).length > 0));
  if (names.length === 0) return undefined;
  const hosts = sorted(containers.flatMap(hostsOf));
  const what = plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.length);
  return { reason: "probe or lifecycle host", detail: `${containersNamed(names)} ${plural("uses", "use", names.length)} ${what} ${joinQuoted(hosts)}` };
};

export const privileged: Check = ({ containers }) => {
  const names = namesOf(containers, ({ securityContext }) => securityContext?.privileged === true);
  return names.length > 0 ? { reason: "privileged", detail: `${containersNamed(names)} must not set securityContext.privileged=true` } : undefined;
};

export const procMount: Check = ({ containers }) => {
  const other = ({ securityContext }: AnyContainer): string[] => (securityContext?.procMount && securityContext.procMount !== "Default" ? [securityContext.procMount] : []);
  const names = namesOf(containers, (container) => other(container).length > 0);
  if (names.length === 0) return undefined;
  return { reason: "procMount", detail: `${containersNamed(names)} must not set securityContext.procMount to ${joinQuoted(sorted(containers.flatMap(other)))}` };
};

export const procMountUnlessUserNamespace: Check = (checked) => (hasUserNamespace(checked) ? undefined : procMount(checked));

export const SECCOMP_TYPES: ReadonlySet<string> = new Set(["RuntimeDefault", "Localhost"]);
const SECCOMP_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER_ANNOTATION = "container.seccomp.security.alpha.kubernetes.io/";

/** Before there was a field for it. */
export const seccompAnnotations: Check = ({ annotations, containers }) => {
  const isGood = (value: string): boolean => value === "runtime/default" || value === "docker/default" || value.startsWith("localhost/");
  const wanted = [SECCOMP_ANNOTATION, ...containers.map(({ name }) => `${SECCOMP_CONTAINER_ANNOTATION}${name}`)];
  const bad = sorted(wanted.filter((name) => annotations[name] !== undefined && !isGood(annotations[name])).map((name) => `${name}=${goQuote(annotations[name]!)}`));
  return bad.length > 0 ? { reason: "seccompProfile", detail: `forbidden ${plural("annotation", "annotations", bad.length)} ${bad.join(", ")}` } : undefined;
};

export const seccompBaseline: Check = (checked) => {
  const { setters, values } = badValues<string>(checked, ({ seccompProfile }) => seccompProfile?.type, (type) => !SECCOMP_TYPES.has(type));
  return setters.length > 0 ? { reason: "seccompProfile", detail: `${setters.join(" and ")} must not set securityContext.seccompProfile.type to ${joinQuoted(sorted(values))}` } : undefined;
};

const SELINUX_TYPES = ["", "container_t", "container_init_t", "container_kvm_t"];

function seLinux(types: readonly string[]): Check {
  return (checked) => {
    const badType = ({ type = "" }: SELinuxOptions): boolean => !types.includes(type);
    const { setters, values } = badValues<SELinuxOptions>(checked, ({ seLinuxOptions: options }) => options, (options) => badType(options) || !!options.user || !!options.role);
    if (setters.length === 0) return undefined;
    const bad = sorted(values.filter(badType).map(({ type = "" }) => type));
    const told = [
      ...(bad.length > 0 ? [`${plural("type", "types", bad.length)} ${joinQuoted(bad)}`] : []),
      ...(values.some(({ user }) => user) ? ["user may not be set"] : []),
      ...(values.some(({ role }) => role) ? ["role may not be set"] : []),
    ];
    return { reason: "seLinuxOptions", detail: `${setters.join(" and ")} set forbidden securityContext.seLinuxOptions: ${told.join("; ")}` };
  };
}

export const seLinuxOptions = seLinux(SELINUX_TYPES);
export const seLinuxOptionsFrom31 = seLinux([...SELINUX_TYPES, "container_engine_t"]);

const SYSCTLS = ["kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"];
const SYSCTLS_27 = [...SYSCTLS, "net.ipv4.ip_local_reserved_ports"];
const SYSCTLS_29 = [...SYSCTLS_27, "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes"];
const SYSCTLS_32 = [...SYSCTLS_29, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];

function sysctlsBut(allowed: readonly string[]): Check {
  return ({ spec }): Violation | undefined => {
    const names = (spec.securityContext?.sysctls ?? []).map(({ name }) => name).filter((name) => !allowed.includes(name));
    return names.length > 0 ? { reason: "forbidden sysctls", detail: names.join(", ") } : undefined;
  };
}

export const sysctls = sysctlsBut(SYSCTLS);
export const sysctlsFrom27 = sysctlsBut(SYSCTLS_27);
export const sysctlsFrom29 = sysctlsBut(SYSCTLS_29);
export const sysctlsFrom32 = sysctlsBut(SYSCTLS_32);

export const windowsHostProcess: Check = (checked: Checked) => {
  const { setters } = badValues<boolean>(checked, ({ windowsOptions }) => windowsOptions?.hostProcess, (hostProcess) => hostProcess);
  return setters.length > 0 ? { reason: "hostProcess", detail: `${setters.join(" and ")} must not set securityContext.windowsOptions.hostProcess=true` } : undefined;
};
