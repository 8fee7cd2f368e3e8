/**
 * What the API fills in for pods and for templates of pods.
 *
 * A template gets less than a pod: what only makes sense for one pod (requests from limits, service links, host ports) waits until there is one.
 *
 * Source: kubernetes v1.36 pkg/apis/core/v1/defaults.go
 */
import type { Container, EphemeralContainer, Pod, PodSpec, PodTemplateSpec, Probe, ResourceRequirements, Volume } from "../../../api/gen/core.v1.ts";
import type { TemplateMeta } from "../../../api/meta/object-meta.ts";
import { isHugePage, isOvercommitAllowed, isPodLevelResource, roundResourceList } from "../checks/resources.ts";
import { defaultClaimSpec } from "../persistent-volume-claim/defaults.ts";
import { defaultVolumeSource } from "../volume-source.ts";
import { containerLimits, containerRequests } from "./aggregate.ts";

const FILE_MODE_DEFAULT = 0o644;
const TOKEN_SECONDS_DEFAULT = 3600;
const GRACE_SECONDS_DEFAULT = 30;

/** What init containers were before there was a field for them. Source: kubernetes v1.36 pkg/apis/core/v1/conversion.go dropInitContainerAnnotations */
const INIT_ANNOTATIONS: ReadonlySet<string> = new Set(["beta", "alpha"].flatMap((stage) => ["init-containers", "init-container-statuses"].map((what) => `pod.${stage}.kubernetes.io/${what}`)));

function dropInitAnnotations(metadata: TemplateMeta | undefined): void {
  const annotations = Object.entries(metadata?.annotations ?? {});
  const kept = annotations.filter(([name]) => !INIT_ANNOTATIONS.has(name));
  if (kept.length === annotations.length) return;
  if (kept.length > 0) metadata!.annotations = Object.fromEntries(kept);
  else delete metadata!.annotations;
}

export function defaultPod(pod: Pod): void {
  dropInitAnnotations(pod.metadata);
  const spec = (pod.spec ??= { containers: [] });
  defaultPodSpec(spec);
  for (const { resources } of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) requestsFromLimits(resources);
  defaultPodResources(spec);
  spec.enableServiceLinks ??= true;
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) spec.terminationGracePeriodSeconds = 1; // of pods only; templates are warned about
  if (spec.hostNetwork)
    for (const { ports } of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) for (const port of ports ?? []) port.hostPort ||= port.containerPort;
  defaultPodStatus(pod);
}

/** Two fields say which address a pod has: what stands in the older one counts. Source: pkg/apis/core/v1/conversion.go Convert_v1_PodStatus_To_core_PodStatus */
function settleAddresses(status: NonNullable<Pod["status"]>): void {
  const { podIP, podIPs } = status;
  if (podIP && podIPs?.[0]?.ip !== podIP) status.podIPs = [{ ip: podIP }];
  else if (!podIP && podIPs?.[0]?.ip) status.podIP = podIPs[0].ip;
}

export function defaultPodStatus({ status }: Pod): void {
  if (status) settleAddresses(status);
  for (const { allocatedResources, resources } of [status ?? {}, ...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? []), ...(status?.ephemeralContainerStatuses ?? [])]) {
    roundResourceList(allocatedResources);
    roundRequirements(resources);
  }
}

export function defaultPodTemplate(template: PodTemplateSpec): void {
  template.metadata ??= {};
  dropInitAnnotations(template.metadata);
  defaultPodSpec((template.spec ??= { containers: [] }));
}

/** What pods and templates share. */
function defaultPodSpec(spec: PodSpec): void {
  spec.dnsPolicy ||= "ClusterFirst";
  spec.restartPolicy ||= "Always";
  spec.securityContext ??= {};
  spec.terminationGracePeriodSeconds ??= GRACE_SECONDS_DEFAULT;
  spec.schedulerName ||= "default-scheduler";
  mirrorServiceAccount(spec);
  roundResourceList(spec.overhead);
  roundRequirements(spec.resources);
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? []), ...(spec.ephemeralContainers ?? [])]) defaultContainer(container);
}

/** The deprecated name of the field always says the same as the field. */
function mirrorServiceAccount(spec: PodSpec): void {
  const name = spec.serviceAccountName || spec.serviceAccount;
  if (!name) return;
  spec.serviceAccountName = name;
  spec.serviceAccount = name;
}

function defaultContainer(container: Container | EphemeralContainer): void {
  container.imagePullPolicy ||= pullPolicyFor(container.image ?? "");
  container.terminationMessagePath ||= "/dev/termination-log";
  container.terminationMessagePolicy ||= "File";
  container.resources ??= {};
  roundRequirements(container.resources);
  for (const port of container.ports ?? []) port.protocol ||= "TCP";
  for (const { valueFrom } of container.env ?? []) if (valueFrom?.fieldRef) valueFrom.fieldRef.apiVersion ||= "v1";
  for (const { valueFrom } of container.env ?? []) if (valueFrom?.fileKeyRef) valueFrom.fileKeyRef.optional ??= false;
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) if (probe) defaultProbe(probe);
  for (const handler of [container.lifecycle?.postStart, container.lifecycle?.preStop]) if (handler?.httpGet) defaultHttpGet(handler.httpGet);
}

function defaultProbe(probe: Probe): void {
  probe.timeoutSeconds ||= 1;
  probe.periodSeconds ||= 10;
  probe.successThreshold ||= 1;
  probe.failureThreshold ||= 3;
  if (probe.httpGet) defaultHttpGet(probe.httpGet);
  if (probe.grpc) probe.grpc.service ??= "";
}

function defaultHttpGet(action: NonNullable<Probe["httpGet"]>): void {
  action.path ||= "/";
  action.scheme ||= "HTTP";
}

/** "latest", also when it is not written, is pulled every time. */
function pullPolicyFor(image: string): "Always" | "IfNotPresent" { return imageTag(image) === "latest" ? "Always" : "IfNotPresent"; }

const IDENTIFIER = /^[a-f0-9]{64}$/;
/** Source: github.com/distribution/reference v0.6 RepositoryNameTotalLengthMax */
const REPOSITORY_LENGTH_MAX = 255;
const HOST = /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::\d+)?$/;
/** Of the algorithms there are, as long as each makes them. */
const DIGEST = /^(sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})$/;
const REPOSITORY = /^[a-z0-9]+(?:(?:\.|_|__|-+|\/)[a-z0-9]+)*$/;

/** The tag of an image reference; "" if a digest takes its place, or if it is no reference at all. */
function imageTag(image: string): string {
  if (IDENTIFIER.test(image)) return "";
  const digestAt = image.indexOf("@");
  const name = digestAt < 0 ? image : image.slice(0, digestAt);
  const slash = name.indexOf("/");
  const first = name.slice(0, Math.max(slash, 0));
  const hasHost = /[.:]/.test(first) || first === "localhost" || first !== first.toLowerCase();
  const [repository = "", tag, ...more] = (hasHost ? name.slice(slash + 1) : name).split(":");
  const path = hasHost || slash >= 0 ? repository : `library/${repository}`;
  if ((hasHost && !HOST.test(first)) || (digestAt >= 0 && !DIGEST.test(image.slice(digestAt + 1)))) return "";
  if (!REPOSITORY.test(repository) || path.length > REPOSITORY_LENGTH_MAX || more.length > 0 || (tag !== undefined && !/^\w[\w.-]{0,127}$/.test(tag))) return "";
  return tag ?? (digestAt < 0 ? "latest" : "");
}

function defaultVolume(volume: Volume): void {
  const sources = Object.keys(volume).filter((name) => name !== "name" && volume[name as keyof Volume] != null);
  if (sources.length === 0) volume.emptyDir = {};
  if (volume.secret) volume.secret.defaultMode ??= FILE_MODE_DEFAULT;
  if (volume.configMap) volume.configMap.defaultMode ??= FILE_MODE_DEFAULT;
  if (volume.downwardAPI) volume.downwardAPI.defaultMode ??= FILE_MODE_DEFAULT;
  for (const { fieldRef } of volume.downwardAPI?.items ?? []) if (fieldRef) fieldRef.apiVersion ||= "v1";
  if (volume.image) volume.image.pullPolicy ||= pullPolicyFor(volume.image.reference ?? "");
  if (volume.ephemeral?.volumeClaimTemplate) {
    volume.ephemeral.volumeClaimTemplate.metadata ??= {};
    defaultClaimSpec(volume.ephemeral.volumeClaimTemplate.spec);
  }
  if (volume.projected) defaultProjected(volume.projected);
  defaultVolumeSource(volume);
}

function defaultProjected(projected: NonNullable<Volume["projected"]>): void {
  projected.defaultMode ??= FILE_MODE_DEFAULT;
  for (const { downwardAPI, serviceAccountToken } of projected.sources ?? []) {
    for (const { fieldRef } of downwardAPI?.items ?? []) if (fieldRef) fieldRef.apiVersion ||= "v1";
    if (serviceAccountToken) serviceAccountToken.expirationSeconds ??= TOKEN_SECONDS_DEFAULT;
  }
}

function roundRequirements(resources: ResourceRequirements | undefined): void {
  roundResourceList(resources?.limits);
  roundResourceList(resources?.requests);
}

function requestsFromLimits(resources: ResourceRequirements | undefined): void {
  if (resources?.limits && Object.keys(resources.limits).length > 0) resources.requests = { ...resources.limits, ...resources.requests };
}

/** Resources of the whole pod: huge pages are limited to what the containers need; requests come from the containers, else from the limits. */
function defaultPodResources(spec: PodSpec): void {
  const { resources } = spec;
  if (!resources) return;
  const limits = { ...resources.limits };
  if (Object.keys(limits).length > 0 || Object.keys(resources.requests ?? {}).length > 0)
    for (const [name, amount] of containerLimits(spec).entries())
      if (isHugePage(name) && resources.requests?.[name] === undefined) limits[name] ??= amount.toString();
  if (Object.keys(limits).length === 0) return;
  resources.limits = limits;

  const requests = { ...resources.requests };
  for (const [name, amount] of containerRequests(spec).entries()) if (isPodLevelResource(name) && isOvercommitAllowed(name)) requests[name] ??= amount.toString();
  for (const [name, amount] of Object.entries(limits)) if (isPodLevelResource(name)) requests[name] ??= amount;
  if (Object.keys(requests).length > 0) resources.requests = requests;
}
