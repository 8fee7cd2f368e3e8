/**
 * What is accepted although it probably is not meant: the texts of the Warning header, for pods and templates.
 *
 * Source: kubernetes v1.36 pkg/api/pod/warnings.go, pkg/api/node/util.go
 */
import { child, index, key } from "../../../api/meta/field-error.ts";
import type { ContainerPort, NodeSelectorTerm, Pod, PodAffinityTerm, PodSpec, Volume } from "../../../api/gen/core.v1.ts";
import { goQuote } from "../../../api/meta/go-quote.ts";
import { repeats } from "../../../api/meta/linear.ts";
import { labelValue } from "../../../api/meta/names.ts";
import type { TemplateMeta } from "../../../api/meta/object-meta.ts";
import { parseQuantity } from "../../../api/meta/quantity.ts";
import { semanticEqual } from "../checks/equal.ts";
import { ipWarnings } from "../checks/ip.ts";
import type { ResourceList } from "../checks/resources.ts";
import { claimWarnings } from "../persistent-volume-claim/warnings.ts";
import { appArmorFor } from "./app-armor.ts";
import { type AnyContainer, containersOf } from "./containers.ts";
import { APPARMOR_ANNOTATION_PREFIX, SECCOMP_CONTAINER_ANNOTATION_PREFIX, SECCOMP_POD_ANNOTATION } from "./validation/security.ts";
import { overlapWarnings } from "./volume-overlaps.ts";

const NODE_LABELS_DEPRECATED: Readonly<Record<string, string>> = {
  "beta.kubernetes.io/arch": `deprecated since v1.14; use "kubernetes.io/arch" instead`,
  "beta.kubernetes.io/os": `deprecated since v1.14; use "kubernetes.io/os" instead`,
  "failure-domain.beta.kubernetes.io/region": `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
  "failure-domain.beta.kubernetes.io/zone": `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
  "beta.kubernetes.io/instance-type": `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`,
  "app.kubernetes.io/created-by": "deprecated since v1.9",
  "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
  "node-role.kubernetes.io/master": `use "node-role.kubernetes.io/control-plane" instead`,
};

export function deprecatedNodeLabel(name: string): string | undefined { return Object.hasOwn(NODE_LABELS_DEPRECATED, name) ? NODE_LABELS_DEPRECATED[name] : undefined; }

const ANNOTATIONS_DEAD: Readonly<Record<string, string>> = {
  "scheduler.alpha.kubernetes.io/critical-pod": `non-functional in v1.16+; use the "priorityClassName" field instead`,
  "security.alpha.kubernetes.io/sysctls": `non-functional in v1.11+; use the "sysctls" field instead`,
  "security.alpha.kubernetes.io/unsafe-sysctls": `non-functional in v1.11+; use the "sysctls" field instead`,
};

const VOLUMES_DEPRECATED: readonly [field: keyof Volume, text: string, shown?: string][] = [
  ["photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"],
  ["gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"],
  ["scaleIO", "deprecated in v1.16, non-functional in v1.22+"],
  ["flocker", "deprecated in v1.22, non-functional in v1.25+"],
  ["storageos", "deprecated in v1.22, non-functional in v1.25+", "storageOS"],
  ["quobyte", "deprecated in v1.22, non-functional in v1.25+"],
  ["glusterfs", "deprecated in v1.25, non-functional in v1.26+"],
  ["cephfs", "deprecated in v1.28, non-functional in v1.31+"],
  ["rbd", "deprecated in v1.28, non-functional in v1.31+"],
];

const SECCOMP_DEAD = `non-functional in v1.27+; use the "seccompProfile" field instead`;
/** Resources that are counted in bytes. */
const BYTES = ["memory", "ephemeral-storage"];
const NO_SELECTOR = "a null labelSelector results in matching no pod";

/** `path`: "" for a pod, the path of the template for one. */
export function* podWarnings(path: string, spec: Readonly<PodSpec>, metadata: Readonly<TemplateMeta>): Iterable<string> {
  const at = child(path, "spec");
  const annotations = metadata.annotations ?? {};
  yield* schedulingWarnings(at, spec);
  for (const [name, text] of Object.entries(ANNOTATIONS_DEAD)) if (name in annotations) yield `${key(child(path, "metadata", "annotations"), name)}: ${text}`;
  yield* volumeWarnings(child(at, "volumes"), spec.volumes ?? []);
  yield* repeatedWarnings(at, spec);
  for (const name of BYTES) yield* fractionWarning(child(at, "overhead"), name, spec.overhead);
  if (!spec.securityContext?.seccompProfile && SECCOMP_POD_ANNOTATION in annotations) yield `${key(child(path, "metadata", "annotations"), SECCOMP_POD_ANNOTATION)}: ${SECCOMP_DEAD}`;
  for (const { container, path: containerPath } of containersOf(spec, at)) {
    yield* profileWarnings(path, container, spec, annotations);
    for (const name of BYTES)
      for (const list of ["limits", "requests"] as const) yield* fractionWarning(child(containerPath, "resources", list), name, container.resources?.[list]);
    yield* envWarnings(child(containerPath, "env"), container.env ?? []);
  }
  yield* portWarnings(at, spec);
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) yield `${child(at, "terminationGracePeriodSeconds")}: must be >= 0; negative values are invalid and will be treated as 1`;
  yield* affinityWarnings(child(at, "affinity"), spec);
  for (const [i, server] of (spec.dnsConfig?.nameservers ?? []).entries()) yield* ipWarnings(index(child(at, "dnsConfig", "nameservers"), i), server);
  for (const [i, { ip }] of (spec.hostAliases ?? []).entries()) yield* ipWarnings(child(index(child(at, "hostAliases"), i), "ip"), ip);
}

export function* statusWarnings({ status }: Readonly<Pod>): Iterable<string> {
  for (const field of ["podIPs", "hostIPs"] as const)
    for (const [i, { ip = "" }] of (status?.[field] ?? []).entries()) yield* ipWarnings(child(index(child("status", field), i), "ip"), ip);
}

function* schedulingWarnings(path: string, spec: Readonly<PodSpec>): Iterable<string> {
  for (const name of Object.keys(spec.nodeSelector ?? {})) if (deprecatedNodeLabel(name)) yield `${key(child(path, "nodeSelector"), name)}: ${deprecatedNodeLabel(name)}`;
  const nodes = spec.affinity?.nodeAffinity;
  const nodesPath = child(path, "affinity", "nodeAffinity");
  for (const [i, term] of (nodes?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []).entries())
    yield* nodeTermWarnings(index(child(nodesPath, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"), i), term, false);
  for (const [i, { preference }] of (nodes?.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries())
    yield* nodeTermWarnings(child(index(child(nodesPath, "preferredDuringSchedulingIgnoredDuringExecution"), i), "preference"), preference, true);
  for (const [i, { topologyKey, labelSelector }] of (spec.topologySpreadConstraints ?? []).entries()) {
    const at = index(child(path, "topologySpreadConstraints"), i);
    if (deprecatedNodeLabel(topologyKey)) yield `${child(at, "topologyKey")}: ${topologyKey} is ${deprecatedNodeLabel(topologyKey)}`;
    if (!labelSelector) yield `${child(at, "labelSelector")}: ${NO_SELECTOR}`;
  }
}

export function* nodeTermWarnings(path: string, term: NodeSelectorTerm | undefined, checkValues: boolean): Iterable<string> {
  for (const [i, { key: name, values }] of (term?.matchExpressions ?? []).entries()) {
    const at = index(child(path, "matchExpressions"), i);
    if (deprecatedNodeLabel(name)) yield `${child(at, "key")}: ${name} is ${deprecatedNodeLabel(name)}`;
    if (checkValues) for (const [j, value] of (values ?? []).entries()) for (const text of labelValue(value)) yield `${index(child(at, "values"), j)}: ${value} is invalid, ${text}`;
  }
}

function* volumeWarnings(path: string, volumes: readonly Volume[]): Iterable<string> {
  for (const [i, volume] of volumes.entries()) {
    for (const [field, text, shown] of VOLUMES_DEPRECATED) if (volume[field] !== undefined) yield `${child(index(path, i), shown ?? field)}: ${text}`;
    const template = volume.ephemeral?.volumeClaimTemplate;
    if (template) yield* claimWarnings(child(index(path, i), "ephemeral", "volumeClaimTemplate", "spec"), template.spec);
  }
  yield* overlapWarnings(volumes);
}

function* repeatedWarnings(path: string, { hostAliases = [], imagePullSecrets = [] }: Readonly<PodSpec>): Iterable<string> {
  const [isRepeatedIp, isRepeatedName] = [repeats<string>(), repeats<string>()];
  for (const [i, { ip }] of hostAliases.entries())
    if (isRepeatedIp(ip)) yield `${child(index(child(path, "hostAliases"), i), "ip")}: duplicate ip ${goQuote(ip)}`;
  const names = imagePullSecrets.map(({ name }) => name ?? "");
  const at = (i: number): string => child(index(child(path, "imagePullSecrets"), i), "name");
  for (const [i, name] of names.entries()) if (isRepeatedName(name)) yield `${at(i)}: duplicate name ${goQuote(name)}`;
  for (const [i, name] of names.entries()) if (name === "") yield `${at(i)}: invalid empty name ""`;
}

function* fractionWarning(path: string, name: string, list: ResourceList | undefined): Iterable<string> {
  const value = list?.[name];
  if (value !== undefined && !parseQuantity(value).isWhole) yield `${key(path, name)}: fractional byte value ${goQuote(value)} is invalid, must be an integer`;
}

/** Profiles named in annotations, where the fields that replaced them are not set. */
function* profileWarnings(path: string, container: AnyContainer, spec: Readonly<PodSpec>, annotations: Readonly<Record<string, string>>): Iterable<string> {
  const annotationsPath = child(path, "metadata", "annotations");
  const seccomp = SECCOMP_CONTAINER_ANNOTATION_PREFIX + container.name;
  if (!container.securityContext?.seccompProfile && seccomp in annotations) yield `${key(annotationsPath, seccomp)}: ${SECCOMP_DEAD}`;
  const appArmor = APPARMOR_ANNOTATION_PREFIX + container.name;
  const value = annotations[appArmor];
  if (path === "" || value === undefined || container.securityContext?.appArmorProfile) return;
  const podProfile = spec.securityContext?.appArmorProfile;
  if (!podProfile || !semanticEqual(podProfile, appArmorFor(value))) yield `${key(annotationsPath, appArmor)}: deprecated since v1.30; use the "appArmorProfile" field instead`;
}

/** A variable may build on an earlier one of its name; otherwise it hides it. */
function* envWarnings(path: string, vars: NonNullable<PodSpec["containers"][number]["env"]>): Iterable<string> {
  const seen = new Set<string>();
  for (const [i, { name, value = "", valueFrom }] of vars.entries()) {
    const reference = `$(${name})`;
    if (seen.has(name) && (valueFrom || value === reference || !value.includes(reference)))
      yield `${index(path, i)}: hides previous definition of ${goQuote(name)}, which may be dropped when using apply`;
    seen.add(name);
  }
}

/** Each with each before it: far more than people write, and no more than is done in a moment. */
const COMPARED_MAX = 100_000;

function* portWarnings(path: string, spec: Readonly<PodSpec>): Iterable<string> {
  let compared = 0;
  const byPort = new Map<string, { readonly path: string; readonly port: ContainerPort }[]>();
  const ports = [...containersOf(spec, path)].flatMap(({ container, path: at }) => (container.ports ?? []).map((port, i) => ({ port, path: index(child(at, "ports"), i) })));
  for (const { port, path: at } of ports) {
    if (port.hostIP && !port.hostPort)
      yield `${at}: hostIP set without hostPort: {Name:${port.name ?? ""} HostPort:0 ContainerPort:${port.containerPort} Protocol:${port.protocol ?? ""} HostIP:${port.hostIP}}`;
    const number = `${port.containerPort}/${port.protocol ?? ""}`;
    const others = byPort.get(number) ?? [];
    byPort.set(number, others);
    for (const other of others) {
      if (++compared > COMPARED_MAX) return;
      const [a, b] = [port.hostIP ?? "", other.port.hostIP ?? ""];
      const samePort = (port.hostPort ?? 0) === (other.port.hostPort ?? 0);
      if (a === b && samePort) yield `${at}: duplicate port definition with ${other.path}`;
      else if (!port.hostPort || !other.port.hostPort) yield `${at}: overlapping port definition with ${other.path}`;
      else if (samePort && (a === "") !== (b === "")) yield `${at}: dangerously ambiguous port definition with ${other.path}`;
    }
    others.push({ port, path: at });
  }
  const byName = new Map<string, string>();
  for (const { port: { name }, path: at } of ports) {
    if (!name) continue;
    const other = byName.get(name);
    if (other) yield `${at}: duplicate port name ${goQuote(name)} with ${other}, services and probes that select ports by name will use ${other}`;
    else byName.set(name, at);
  }
}

function* affinityWarnings(path: string, { affinity }: Readonly<PodSpec>): Iterable<string> {
  const unselective = (at: string, term: PodAffinityTerm | undefined): string[] => (term?.labelSelector ? [] : [`${child(at, "labelSelector")}: ${NO_SELECTOR}`]);
  for (const field of ["podAffinity", "podAntiAffinity"] as const) {
    const part = affinity?.[field];
    for (const [i, term] of (part?.requiredDuringSchedulingIgnoredDuringExecution ?? []).entries())
      yield* unselective(index(child(path, field, "requiredDuringSchedulingIgnoredDuringExecution"), i), term);
    for (const [i, { podAffinityTerm }] of (part?.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries())
      yield* unselective(child(index(child(path, field, "preferredDuringSchedulingIgnoredDuringExecution"), i), "podAffinityTerm"), podAffinityTerm);
  }
}
