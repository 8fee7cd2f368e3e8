/**
 * The checks the level "restricted" adds: what is good practice must be asked for.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/pod-security-admission/policy/check_*.go
 */
import type { Volume } from "../../api/gen/core.v1.ts";
import { SECCOMP_TYPES, seccompBaseline } from "./baseline.ts";
import { type AnyContainer, badValues, type Check, containersNamed, hasUserNamespace, isWindows, joinQuoted, namesOf, plural, sorted } from "./containers.ts";

export const allowPrivilegeEscalation: Check = ({ containers }) => {
  const names = namesOf(containers, ({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false);
  return names.length > 0 ? { reason: "allowPrivilegeEscalation != false", detail: `${containersNamed(names)} must set securityContext.allowPrivilegeEscalation=false` } : undefined;
};

export const capabilitiesRestricted: Check = ({ containers }) => {
  const missing = namesOf(containers, ({ securityContext }) => !securityContext?.capabilities?.drop?.includes("ALL"));
  const more = ({ securityContext }: AnyContainer): string[] => (securityContext?.capabilities?.add ?? []).filter((capability) => capability !== "NET_BIND_SERVICE");
  const adding = namesOf(containers, (container) => more(container).length > 0);
  const details = [
    ...(missing.length > 0 ? [`${containersNamed(missing)} must set securityContext.capabilities.drop=["ALL"]`] : []),
    ...(adding.length > 0 ? [`${containersNamed(adding)} must not include ${joinQuoted(sorted(containers.flatMap(more)))} in securityContext.capabilities.add`] : []),
  ];
  return details.length > 0 ? { reason: "unrestricted capabilities", detail: details.join("; ") } : undefined;
};

/** The others are not to be used inline: an administrator makes a PersistentVolume of them. */
const VOLUME_TYPES = ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"] as const satisfies readonly (keyof Volume)[];
const OTHER_VOLUME_TYPES = [
  "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd", "flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile", "vsphereVolume",
  "quobyte", "azureDisk", "photonPersistentDisk", "portworxVolume", "scaleIO", "storageos",
] as const satisfies readonly (keyof Volume)[];

export const restrictedVolumes: Check = ({ spec }) => {
  const bad = (spec.volumes ?? []).filter((volume) => !VOLUME_TYPES.some((type) => volume[type]));
  if (bad.length === 0) return undefined;
  const types = sorted(bad.map((volume) => OTHER_VOLUME_TYPES.find((type) => volume[type]) ?? "unknown"));
  const what = plural("restricted volume type", "restricted volume types", types.length);
  return {
    reason: "restricted volume types",
    detail: `${plural("volume", "volumes", bad.length)} ${joinQuoted(bad.map(({ name }) => name))} ${plural("uses", "use", bad.length)} ${what} ${joinQuoted(types)}`,
  };
};

export const runAsNonRoot: Check = (checked) => {
  const reason = "runAsNonRoot != true";
  const { setters } = badValues<boolean>(checked, ({ runAsNonRoot: value }) => value, (value) => !value);
  if (setters.length > 0) return { reason, detail: `${setters.join(" and ")} must not set securityContext.runAsNonRoot=false` };
  if (checked.spec.securityContext?.runAsNonRoot === true) return undefined;
  const names = namesOf(checked.containers, ({ securityContext }) => securityContext?.runAsNonRoot == null);
  return names.length > 0 ? { reason, detail: `pod or ${containersNamed(names)} must set securityContext.runAsNonRoot=true` } : undefined;
};

export const runAsUser: Check = (checked) => {
  const { setters } = badValues<number>(checked, ({ runAsUser: value }) => value, (value) => Number(value) === 0);
  return setters.length > 0 ? { reason: "runAsUser=0", detail: `${setters.join(" and ")} must not set runAsUser=0` } : undefined;
};

export const seccompRestricted: Check = (checked) => {
  const bad = seccompBaseline(checked);
  if (bad) return bad;
  if (SECCOMP_TYPES.has(checked.spec.securityContext?.seccompProfile?.type ?? "")) return undefined;
  const names = namesOf(checked.containers, ({ securityContext }) => !securityContext?.seccompProfile);
  return names.length > 0 ? { reason: "seccompProfile", detail: `pod or ${containersNamed(names)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"` } : undefined;
};

export function unlessWindows(check: Check): Check { return (checked) => (isWindows(checked) ? undefined : check(checked)); }

export function unlessUserNamespace(check: Check): Check { return (checked) => (hasUserNamespace(checked) ? undefined : check(checked)); }
