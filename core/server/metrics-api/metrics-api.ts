/**
 * metrics.k8s.io/v1beta1: what nodes and containers use now, for `kubectl top` and autoscalers. No collector runs for it: the kubelets
 * concerned are asked when somebody asks us, at most every few seconds.
 *
 *   new Registry([...builtInResources.rows(), ...METRICS_ROWS], …)          serves the resources
 *   metricsHandlers(deps)(info)?.(scope)                                    answers them
 *
 * A usage is a rate, so it needs two looks: of what a kubelet has no rate for yet, it is asked once more a second later. What has none then
 * is not there, as with metrics-server.
 *
 * Source: kubernetes-sigs/metrics-server pkg/api; kubernetes v1.36 staging/src/k8s.io/metrics/pkg/apis/metrics/v1beta1
 */
import type { Node, Pod } from "../../api/gen/core.v1.ts";
import type { ContainerMetrics, NodeMetrics, PodMetrics } from "../../api/gen/metrics.v1beta1.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { notFound } from "../../api/meta/status-error.ts";
import type { ResourceRow } from "../../api/schema/resources.ts";
import type { Answer } from "../answer.ts";
import type { NodeProxyDeps } from "../node-proxy/backend.ts";
import type { ResourceRequestInfo } from "../request-info.ts";
import type { ResourceHandler, Scope } from "../scope.ts";
import { selectionOf } from "../verbs/options.ts";
import { type NodeSummary, summaryReader, type SummaryReader, type Usage } from "./summary.ts";

const GROUP = "metrics.k8s.io";
const VERSION = "v1beta1";
const API_VERSION = `${GROUP}/${VERSION}`;

export const METRICS_ROWS: readonly ResourceRow[] = [row("nodes", "NodeMetrics", false), row("pods", "PodMetrics", true)];

function row(plural: string, kind: string, namespaced: boolean): ResourceRow {
  return {
    group: GROUP, version: VERSION, plural, singular: "", kind, namespaced, shortNames: [], categories: [], verbs: ["get", "list"], subresources: [],
    storageVersionHash: undefined, returnsDeleted: false, custom: false,
  };
}

export function metricsHandlers(deps: NodeProxyDeps): (info: ResourceRequestInfo) => ResourceHandler | undefined {
  const reader = summaryReader(deps);
  const table: Readonly<Record<string, ResourceHandler>> = {
    "get nodes": (scope) => one(scope, nodeMetrics(reader, scope)),
    "list nodes": (scope) => list(scope, nodeMetrics(reader, scope)),
    "get pods": (scope) => one(scope, podMetrics(reader, scope)),
    "list pods": (scope) => list(scope, podMetrics(reader, scope)),
  };
  return ({ group, version, verb, resource, subresource }) => (group === GROUP && version === VERSION && subresource === "" ? table[`${verb} ${resource}`] : undefined);
}

type Metrics = NodeMetrics | PodMetrics;

async function one({ info }: Scope, found: Promise<readonly Metrics[]>): Promise<Answer> {
  const [object] = await found;
  if (!object) throw notFound({ group: GROUP, resource: info.resource }, info.namespace === "" ? info.name : `${info.namespace}/${info.name}`);
  return { type: "object", status: 200, object: object as unknown as ApiObject };
}

async function list({ served: { row: { kind } } }: Scope, found: Promise<readonly Metrics[]>): Promise<Answer> {
  return { type: "object", status: 200, object: { kind: `${kind}List`, apiVersion: API_VERSION, metadata: {}, items: await found } };
}

async function nodeMetrics(reader: SummaryReader, scope: Scope): Promise<NodeMetrics[]> {
  const nodes = await objects<Node>(scope, "nodes");
  const summaries = await reader.read(scope, nodes.map(({ metadata }) => metadata.name), (summary) => summary.node !== undefined);
  return nodes.flatMap(({ metadata }) => {
    const usage = summaries.get(metadata.name)?.node;
    if (!usage) return [];
    return [{ kind: "NodeMetrics", apiVersion: API_VERSION, metadata: metadataOf(metadata), timestamp: usage.time, window: WINDOW, usage: usageOf(usage) }];
  });
}

async function podMetrics(reader: SummaryReader, scope: Scope): Promise<PodMetrics[]> {
  const pods = (await objects<Pod>(scope, "pods")).filter(({ spec, status }) => spec.nodeName && status?.phase === "Running");
  const complete = (summary: NodeSummary, pod: Pod): boolean => summary.pods.get(pod.metadata.uid)?.every(({ usage }) => usage !== undefined) ?? false;
  const summaries = await reader.read(scope, [...new Set(pods.map(({ spec }) => spec.nodeName!))], (summary, name) => pods.every((pod) => pod.spec.nodeName !== name || complete(summary, pod)));
  return pods.flatMap((pod) => {
    const summary = summaries.get(pod.spec.nodeName!);
    if (!summary || !complete(summary, pod)) return [];
    const containers = summary.pods.get(pod.metadata.uid)!.map(({ name, usage }): ContainerMetrics & { readonly time: string } => ({ name, usage: usageOf(usage!), time: usage!.time }));
    if (containers.length === 0) return [];
    return [{
      kind: "PodMetrics", apiVersion: API_VERSION, metadata: metadataOf(pod.metadata), timestamp: containers.map(({ time }) => time).toSorted()[0]!, window: WINDOW,
      containers: containers.map(({ name, usage }) => ({ name, usage })),
    }];
  });
}

/** About the time that kubelets average over. */
const WINDOW = "10s";

/** The pods or nodes the request is about, those that are there. */
async function objects<T>(scope: Scope, plural: "nodes" | "pods"): Promise<readonly Readonly<T>[]> {
  const { server: { registry, cache }, info, signal } = scope;
  const store = registry.storeOf("", plural)!;
  await cache.fresh(signal);
  if (info.verb === "get") return [...store.select({ namespace: info.namespace, name: info.name })].map(({ object }) => object as unknown as T);
  return [...store.select(selectionOf({ ...scope, served: registry.find("", "v1", plural)! }))].map(({ object }) => object as unknown as T);
}

function metadataOf({ name, namespace, labels, creationTimestamp }: ApiObject["metadata"]): PodMetrics["metadata"] {
  return { name, ...(namespace ? { namespace } : {}), creationTimestamp, ...(labels ? { labels } : {}) } as PodMetrics["metadata"];
}

function usageOf({ nanoCores, workingSetBytes, swapBytes }: Usage): Record<string, string> {
  const bytes = (count: number): string => (count % 1024 === 0 ? `${count / 1024}Ki` : String(count));
  return { cpu: nanoCores === 0 ? "0" : `${nanoCores}n`, memory: bytes(workingSetBytes), ...(swapBytes === undefined ? {} : { swap: bytes(swapBytes) }) };
}
