/**
 * The objects a cluster is born with. Made at every start if they are missing, through the API like everybody else's; what users changed stays. Namespaces, the Service `kubernetes`
 * and what extension servers read are made again whenever they are missing: without that Service no new pod is told where the API is.
 *
 * Source: kubernetes v1.36 pkg/controlplane/controller/{systemnamespaces,kubernetesservice,defaultservicecidr,clusterauthenticationtrust,legacytokentracking}, pkg/registry/scheduling/rest
 * The storage class is k3s's.
 */
import type { ConfigMap, Namespace, Service } from "../api/gen/core.v1.ts";
import type { IngressClass, ServiceCIDR } from "../api/gen/networking.v1.ts";
import type { PriorityClass } from "../api/gen/scheduling.v1.ts";
import type { StorageClass } from "../api/gen/storage.v1.ts";
import type { ApiObject, NewObject } from "../api/meta/object-meta.ts";
import { isAlreadyExists, isNotFound, StatusError } from "../api/meta/status-error.ts";
import { authenticationData, type Believed, withOwn } from "../authn/extension-authentication.ts";
import type { Client, ResourceRef } from "../client/client.ts";
import type { EventRecorder } from "../client/events.ts";
import { DNS_SLICE_MANAGER } from "../client/our-slices.ts";
import { ENDPOINT_SLICES } from "../client/resources.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import { parseIp } from "../net/cidr.ts";
import type { Log } from "../observe/log.ts";

export interface BootstrapOptions extends Believed {
  /** Where cluster IPs come from: one range, or one of each family. */
  readonly serviceCidrs: readonly string[];
  /** The first address of the service range: the `kubernetes` Service. */
  readonly apiServiceIp: string;
  readonly apiServicePort: number;
  /** The port servers listen on. */
  readonly apiServerPort: number;
  /** The address of the Service kube-dns; undefined: there is none, for whoever answers names here makes the Service too. */
  readonly clusterDns?: string | undefined;
  /** Whether there is the class local-path. */
  readonly localStorage: boolean;
  /** Whether there is the class coracle, for Ingresses. */
  readonly ingress?: boolean | undefined;
  /** The day, as it is: from when on the use of legacy tokens is noted on their Secrets, where that is not said yet. */
  readonly today?: (() => string) | undefined;
}

export interface Rewritten { of(): string; write(signal: AbortSignal): Promise<void> }

export interface StandingObjectsOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Log;
  readonly options: BootstrapOptions;
  /** What else is to be written whenever what it is made of is another. */
  readonly rewritten?: readonly Rewritten[] | undefined;
  readonly periodMs?: number;
  /** Absent: nobody is told what is wrong with the range of service addresses. */
  readonly recorder?: EventRecorder | undefined;
}

/** How often it is looked whether somebody has deleted what must be there. */
const STANDING_MS = 10_000; // kubernetes v1.36 pkg/controlplane/reconcilers DefaultEndpointReconcilerInterval

/** Who says that the default range is ready. */
const RANGE_MANAGER = "kubernetes-service-cidr-controller";

const AUTHENTICATION = { name: "extension-apiserver-authentication", namespace: "kube-system" };

const NAMESPACES = ["kube-system", "kube-public", "kube-node-lease", "default"];

/** Source: kubernetes v1.36 pkg/controlplane/controller/legacytokentracking */
const LEGACY_TOKENS = "kube-apiserver-legacy-service-account-token-tracking";

const PRIORITY_CLASSES: readonly { readonly name: string; readonly value: number; readonly description: string }[] = [
  { name: "system-cluster-critical", value: 2_000_000_000, description: "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary." },
  { name: "system-node-critical", value: 2_000_001_000, description: "Used for system critical pods that must not be moved from their current node." },
];

const namespaces: ResourceRef<Namespace> = { group: "", version: "v1", plural: "namespaces", kind: "Namespace", namespaced: false };
const services: ResourceRef<Service> = { group: "", version: "v1", plural: "services", kind: "Service", namespaced: true };
const configMaps: ResourceRef<ConfigMap> = { group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", namespaced: true };
const priorityClasses: ResourceRef<PriorityClass> = { group: "scheduling.k8s.io", version: "v1", plural: "priorityclasses", kind: "PriorityClass", namespaced: false };
const serviceRanges: ResourceRef<ServiceCIDR> = { group: "networking.k8s.io", version: "v1", plural: "servicecidrs", kind: "ServiceCIDR", namespaced: false };
const ingressClasses: ResourceRef<IngressClass> = { group: "networking.k8s.io", version: "v1", plural: "ingressclasses", kind: "IngressClass", namespaced: false };
const storageClasses: ResourceRef<StorageClass> = { group: "storage.k8s.io", version: "v1", plural: "storageclasses", kind: "StorageClass", namespaced: false };

/** `made` is told once all is there; what follows is only news for extension servers, which nobody waits for. */
export async function ensureBootstrapObjects(client: Client, options: BootstrapOptions, signal: AbortSignal, made: () => void = () => undefined): Promise<void> {
  await ensureStandingObjects(client, options, signal);
  for (const { name, value, description } of PRIORITY_CLASSES)
    await ensure(client, priorityClasses, { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name }, value, description }, signal);
  if (options.localStorage) await ensure(client, storageClasses, LOCAL_PATH, signal);
  if (options.ingress) await ensure(client, ingressClasses, INGRESS_CLASS, signal);
  if (options.clusterDns !== undefined) await ensure(client, services, dnsService(options.clusterDns), signal);
  made();
  await replaceAuthenticationConfig(client, options, signal);
}

async function replaceAuthenticationConfig(client: Client, options: BootstrapOptions, signal: AbortSignal): Promise<void> {
  await replace(client, configMaps, authenticationConfig(options), signal, { "requestheader-uid-headers": null });
}

/** Until the signal; whom extension servers are to believe is written again when it changes; what cannot be made now is tried again. */
export function standingObjects({ client, clock, log, options, rewritten = [], periodMs = STANDING_MS, recorder }: StandingObjectsOptions): Runnable {
  return {
    name: "standing objects",
    async run(signal, ready) {
      let told = "", toldOfRange = ""; // one trouble is told once
      const whomToBelieve: Rewritten = { of: () => options.clientCa() + options.requestHeaderCa(), write: (signal) => replaceAuthenticationConfig(client, options, signal) };
      const written = new Map([whomToBelieve, ...rewritten].map((one) => [one, one.of()]));
      ready();
      if (options.clusterDns === undefined) await removeDns(client, signal).catch((error: unknown) => { if (!signal.aborted) log.warn("what led to the nodes' DNS of before is still there: delete the Service kube-dns and its EndpointSlices", { error }); });
      await tellOtherDns(client, { options, log, recorder }, signal).catch(() => undefined); // nobody could be asked: it is told at another start
      for await (const _ of clock.every(periodMs, signal)) {
        try {
          const problem = await ensureStandingObjects(client, options, signal);
          if (problem && problem.message !== toldOfRange) {
            recorder?.event(problem.range, "Warning", problem.reason, problem.message);
            log.warn("the range of Services' addresses is not as --service-cidr says; the cluster goes on with what it has", { reason: problem.reason, message: problem.message });
          }
          toldOfRange = problem?.message ?? toldOfRange;
          for (const [one, before] of written) {
            const now = one.of();
            if (now !== before) await one.write(signal);
            written.set(one, now);
          }
          await completeAuthenticationConfig(client, options, signal);
          told = "";
        } catch (error) {
          const { message } = error as Error;
          if (!signal.aborted && message !== told) log.warn("an object every cluster has is missing and could not be made", { error });
          told = message;
        }
      }
    },
  };
}

/** The kubelets tell pods where names are answered by the setting, and a Service keeps the address it was made with. */
async function tellOtherDns(client: Client, { options: { clusterDns }, log, recorder }: Pick<StandingObjectsOptions, "options" | "log" | "recorder">, signal: AbortSignal): Promise<void> {
  if (clusterDns === undefined) return;
  const { metadata: { name, namespace } } = dnsService(clusterDns);
  const service = await client.resource(services).get({ metadata: { name: name!, namespace } }, { signal });
  const addresses = service.spec?.clusterIPs ?? [];
  const wanted = parseIp(clusterDns)?.value;
  if (addresses.length === 0 || addresses.some((address) => parseIp(address)?.value === wanted)) return;
  const remedy = "give the server the --cluster-dns and --service-cidr of before; or, within that range, delete the Service kube-dns, start the server anew, and then all pods";
  log.error("pods that start now have names answered by nobody: their DNS is not at the address of the Service kube-dns", { clusterDns, service: addresses, remedy });
  recorder?.event(service, "Warning", "ClusterDNSInconsistent", `The Service has ${addresses.join(", ")} and pods are told ${clusterDns}: ${remedy}`);
}

interface RangeProblem { readonly range: Readonly<ServiceCIDR>; readonly reason: string; readonly message: string }

/** What one of them meets keeps none of the others from being made: it is told in the end. */
async function ensureStandingObjects(client: Client, options: BootstrapOptions, signal: AbortSignal): Promise<RangeProblem | undefined> {
  let problem: RangeProblem | undefined;
  const steps: (() => Promise<void>)[] = [
    ...NAMESPACES.map((name) => () => ensure(client, namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name }, spec: {} }, signal)),
    async () => { problem = await ensureServiceRange(client, options, signal); },
    () => ensure(client, services, apiService(options), signal),
    () => ensure(client, configMaps, authenticationConfig(options), signal),
    () => options.today ? ensureTracking(client, options.today, signal) : Promise.resolve(),
  ];
  let failed: { readonly error: unknown } | undefined;
  for (const step of steps) await step().catch((error: unknown) => { failed ??= { error }; });
  if (failed) throw failed.error;
  return problem;
}

/** What somebody took out of it is there again; what others added stays. */
async function completeAuthenticationConfig(client: Client, options: BootstrapOptions, signal: AbortSignal): Promise<void> {
  const { data = {} } = await client.resource(configMaps).get({ metadata: AUTHENTICATION }, { signal });
  const missing = withOwn(data, authenticationData(options));
  if (Object.keys(missing).length > 0) await client.resource(configMaps).patch({ metadata: AUTHENTICATION }, "application/merge-patch+json", { data: missing }, { signal });
}

async function ensureTracking(client: Client, today: () => string, signal: AbortSignal): Promise<void> {
  const name = { metadata: { name: LEGACY_TOKENS, namespace: "kube-system" } };
  await ensure(client, configMaps, { apiVersion: "v1", kind: "ConfigMap", ...name, data: { since: today() } }, signal);
  const { data } = await client.resource(configMaps).get(name, { signal });
  if (!isDay(data?.["since"] ?? "")) await client.resource(configMaps).patch(name, "application/merge-patch+json", { data: { since: today() } }, { signal });
}

function isDay(text: string): boolean { return /^\d{4}-\d\d-\d\d$/.test(text) && new Date(`${text}T00:00:00Z`).toJSON()?.slice(0, 10) === text; }

async function ensure<T extends ApiObject>(client: Client, ref: ResourceRef<T>, object: NewObject<T>, signal: AbortSignal): Promise<void> {
  const resource = client.resource(ref);
  const name = { metadata: { name: object.metadata.name!, namespace: object.metadata.namespace } };
  try {
    await resource.get(name, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    await resource.create(object, { signal }).catch((problem: unknown) => {
      if (!isAlreadyExists(problem)) throw problem; // another server was first
    });
  }
}

/** For what this server knows better than any earlier one: where it is. `data`: of whose keys those that are null go. What is so already is not written: a webhook that would refuse it is not asked. */
async function replace<T extends ApiObject>(client: Client, ref: ResourceRef<T>, object: NewObject<T>, signal: AbortSignal, data: Readonly<Record<string, null>> = {}): Promise<void> {
  await ensure(client, ref, object, signal);
  const { apiVersion: _, kind: __, metadata, ...content } = object as NewObject<T> & { apiVersion: string; kind: string };
  const name = { metadata: { name: metadata.name!, namespace: metadata.namespace } };
  const wanted = { metadata: { labels: metadata.labels }, ...content, ...("data" in content ? { data: { ...data, ...(content.data as object) } } : {}) };
  if (holds(await client.resource(ref).get(name, { signal }), wanted)) return;
  await client.resource(ref).patch(name, "application/merge-patch+json", wanted, { signal });
}

/** Whether a merge patch changes nothing of `value`. */
function holds(value: unknown, patch: unknown): boolean {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch === undefined || (patch === null ? value === undefined : Bun.deepEquals(value, patch));
  return Object.entries(patch).every(([key, wanted]) => holds((value as Readonly<Record<string, unknown>> | undefined)?.[key], wanted));
}

/** The range that was configured, which is ready from the start. Where there was one and now is one of the other family too, it is both. Source: kubernetes v1.36 pkg/controlplane/controller/defaultservicecidr */
async function ensureServiceRange(client: Client, { serviceCidrs }: BootstrapOptions, signal: AbortSignal): Promise<RangeProblem | undefined> {
  const name = { metadata: { name: "kubernetes" } };
  await ensure(client, serviceRanges, { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", ...name, spec: { cidrs: [...serviceCidrs] } }, signal);
  const found = await client.resource(serviceRanges).get(name, { signal });
  if (isOneOfBoth(found, serviceCidrs)) {
    try {
      await client.resource(serviceRanges).update({ ...found, spec: { cidrs: [...serviceCidrs] } }, { signal });
      return undefined; // looked at again soon
    } catch (problem) {
      if (!(problem instanceof StatusError)) throw problem; // an admission policy may forbid it: the cluster goes on with what it has
      return { range: found, reason: "KubernetesDefaultServiceCIDRError", message: `The default ServiceCIDR can not be upgraded from ${serviceCidrs[0]} to dual stack ${shown(serviceCidrs)} : ${problem.message}` };
    }
  }
  if (found.metadata.deletionTimestamp) return undefined;
  if (!Bun.deepEquals(found.spec?.cidrs, [...serviceCidrs]))
    return { range: found, reason: "KubernetesDefaultServiceCIDRInconsistent", message: `The default ServiceCIDR ${shown(found.spec?.cidrs ?? [])} does not match the controller flag configurations ${shown(serviceCidrs)}` };
  const known = found.status?.conditions?.find(({ type, status }) => type === "Ready" && status !== "Unknown");
  if (known?.status === "False") return { range: found, reason: known.reason ?? "", message: `Configuration matches, but ${known.message}` };
  if (known) return undefined;
  const ready = { type: "Ready", status: "True", message: "Kubernetes default Service CIDR is ready", lastTransitionTime: found.metadata.creationTimestamp };
  const range = { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", ...name, status: { conditions: [ready] } } as unknown as NewObject<ServiceCIDR>;
  await client.resource(serviceRanges).apply(range, { fieldManager: RANGE_MANAGER, force: true, subresource: "status", signal });
  return undefined;
}

/** As Go prints a list. */
function shown(cidrs: readonly string[]): string { return `[${cidrs.join(" ")}]`; }

function isOneOfBoth({ spec: { cidrs = [] } = {} }: Readonly<ServiceCIDR>, given: readonly string[]): boolean { return cidrs.length === 1 && given.length === 2 && cidrs[0] === given[0]; }

/** Directories on the nodes' disks: core/controllers/localstorage. */
const LOCAL_PATH: NewObject<StorageClass> = {
  apiVersion: "storage.k8s.io/v1", kind: "StorageClass",
  metadata: { name: "local-path", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
  provisioner: "coracle.io/local-path", reclaimPolicy: "Delete", volumeBindingMode: "WaitForFirstConsumer",
};

/** Served by the nodes themselves: node/ingress. */
const INGRESS_CLASS: NewObject<IngressClass> = {
  apiVersion: "networking.k8s.io/v1", kind: "IngressClass",
  metadata: { name: "coracle", annotations: { "ingressclass.kubernetes.io/is-default-class": "true" } },
  spec: { controller: "coracle.io/ingress-controller" },
};

function apiService({ apiServiceIp, apiServicePort, apiServerPort }: BootstrapOptions): NewObject<Service> {
  return {
    apiVersion: "v1", kind: "Service",
    metadata: { name: "kubernetes", namespace: "default", labels: { component: "apiserver", provider: "kubernetes" } },
    spec: { type: "ClusterIP", clusterIP: apiServiceIp, ipFamilyPolicy: "SingleStack", sessionAffinity: "None", ports: [{ name: "https", port: apiServicePort, protocol: "TCP", targetPort: apiServerPort }] },
  };
}

/** Every node answers for itself: the endpoints are the nodes, and traffic stays on the node it comes from. */
function dnsService(clusterDns: string): NewObject<Service> {
  return {
    apiVersion: "v1", kind: "Service",
    metadata: { name: "kube-dns", namespace: "kube-system", labels: { "k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS" } },
    spec: {
      type: "ClusterIP", clusterIP: clusterDns, clusterIPs: [clusterDns], internalTrafficPolicy: "Local",
      ports: [{ name: "dns", port: 53, protocol: "UDP", targetPort: 10_053 }, { name: "dns-tcp", port: 53, protocol: "TCP", targetPort: 10_053 }],
    },
  };
}

/** Where names are somebody else's to answer: what leads to the nodes, which listen no more. A Service that selects pods is theirs already. */
async function removeDns(client: Client, signal: AbortSignal): Promise<void> {
  const { metadata: { name, namespace = "" }, spec } = dnsService("");
  const ignoreGone = (error: unknown): void => { if (!isNotFound(error)) throw error; };
  const labelSelector = `kubernetes.io/service-name=${name},endpointslice.kubernetes.io/managed-by=${DNS_SLICE_MANAGER}`;
  for (const slice of (await client.resource(ENDPOINT_SLICES).list({ namespace, labelSelector }, { signal })).items) await client.resource(ENDPOINT_SLICES).delete(slice, {}, { signal }).catch(ignoreGone);
  const found = await client.resource(services).get({ metadata: { name: name!, namespace } }, { signal }).catch(ignoreGone);
  const { selector = {}, ports = [] } = found?.spec ?? {};
  const isOurs = Object.keys(selector).length === 0 && ports.length > 0 && ports.every(({ targetPort }) => targetPort === spec!.ports![0]!.targetPort);
  if (found && isOurs) await client.resource(services).delete(found, {}, { signal }).catch(ignoreGone);
}

/** What aggregated API servers need to know whom to believe. */
function authenticationConfig(options: BootstrapOptions): NewObject<ConfigMap> {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: AUTHENTICATION, data: authenticationData(options) };
}
