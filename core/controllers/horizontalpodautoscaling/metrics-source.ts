/**
 * Where metrics come from: metrics.k8s.io, which the server answers itself, and the APIs of metrics adapters (custom.metrics.k8s.io,
 * external.metrics.k8s.io), where there is one. Values are in thousandths.
 *
 * Source: kubernetes v1.36 pkg/controller/podautoscaler/metrics/client.go, k8s.io/metrics
 */
import type { CrossVersionObjectReference } from "../../api/gen/autoscaling.v2.ts";
import type { LabelSelector } from "../../api/gen/meta.v1.ts";
import { parseDurationMs } from "../../api/meta/duration.ts";
import { parseApiVersion } from "../../api/meta/gvk.ts";
import { labelSelector } from "../../api/meta/label-selector.ts";
import { parseQuantity } from "../../api/meta/quantity.ts";
import { isNotFound } from "../../api/meta/status-error.ts";
import { parseTime } from "../../api/meta/time.ts";
import type { Client } from "../../client/client.ts";
import { pathPart } from "../../client/path-part.ts";
import { messageOf } from "../pod-control.ts";
import type { PodMetric, PodMetrics } from "./replicas.ts";
import { servedAs } from "./scale.ts";

interface Asked { readonly namespace: string; readonly signal: AbortSignal }

/** All throw an Error for the user. */
export interface MetricsSource {
  /** Of one container of each pod, or of all ("") together. */
  resource(asked: Asked & { readonly selector: string; readonly resource: string; readonly container: string }): Promise<PodMetrics>;
  pods(asked: Asked & { readonly selector: string; readonly metric: string; readonly metricSelector: LabelSelector | undefined }): Promise<PodMetrics>;
  object(asked: Asked & { readonly object: CrossVersionObjectReference; readonly metric: string; readonly metricSelector: LabelSelector | undefined }): Promise<number>;
  external(asked: Asked & { readonly metric: string; readonly metricSelector: LabelSelector | undefined }): Promise<number>;
}

interface Usage { readonly metadata: { readonly name: string }; readonly timestamp: string; readonly window: string; readonly containers?: readonly { readonly name: string; readonly usage: Readonly<Record<string, string>> }[] }
interface CustomValue { readonly describedObject: { readonly name: string }; readonly timestamp: string; readonly windowSeconds?: number; /** As v1beta1 calls it. */ readonly window?: number; readonly value: string }
interface ExternalValue { readonly value: string }

const CUSTOM = "custom.metrics.k8s.io";
/** They differ in how they name a metric and its window. */
const CUSTOM_VERSIONS: readonly string[] = ["v1beta2", "v1beta1"];
const EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1";
/** Source: metricServerDefaultMetricWindow */
const WINDOW_MS = 60_000;

export function metricsSource(client: Client): MetricsSource {
  type Path = string | (() => Promise<string>);
  type Query = Readonly<Record<string, string | undefined>>;
  async function fetched<T>(api: string, path: Path, query: Query, signal: AbortSignal): Promise<readonly T[]> {
    try {
      const { items } = (await client.request({ method: "GET", path: typeof path === "string" ? path : await path(), query, signal })) as { readonly items?: readonly T[] | null };
      return items ?? [];
    } catch (cause) {
      throw new Error(`unable to fetch metrics from ${api} metrics API: ${messageOf(cause)}`, { cause });
    }
  }
  async function items<T>(api: string, path: Path, query: Query, signal: AbortSignal): Promise<readonly T[]> {
    const found = await fetched<T>(api, path, query, signal);
    if (found.length === 0) throw new Error(`no metrics returned from ${api} metrics API`);
    return found;
  }
  const selectorText = (selector: LabelSelector | undefined): string | undefined => (selector === undefined ? undefined : labelSelector(selector).toString()) || undefined;

  return {
    async resource({ namespace, selector, resource, container, signal }) {
      const all = await items<Usage>("resource", `/apis/metrics.k8s.io/v1beta1/namespaces/${pathPart(namespace, "namespace")}/pods`, { labelSelector: selector }, signal);
      return new Map(all.flatMap((one): [string, PodMetric][] => {
        const counted = (one.containers ?? []).filter(({ name }) => container === "" || name === container);
        if (counted.length === 0 || counted.some(({ usage }) => usage[resource] === undefined)) return [];
        const value = counted.reduce((sum, { usage }) => sum + parseQuantity(usage[resource]!).milliNumber(), 0);
        return [[one.metadata.name, { value, timeMs: parseTime(one.timestamp) ?? 0, windowMs: parseDurationMs(one.window) }]];
      }));
    },
    async pods({ namespace, selector, metric, metricSelector, signal }) {
      const all = await items<CustomValue>("custom", async () => `${await customApi(client, signal)}/namespaces/${pathPart(namespace, "namespace")}/pods/*/${pathPart(metric, "metric name")}`, { labelSelector: selector, metricLabelSelector: selectorText(metricSelector) }, signal);
      return new Map(all.map(({ describedObject, timestamp, window, windowSeconds = window, value }): [string, PodMetric] => [
        describedObject.name, { value: parseQuantity(value).milliNumber(), timeMs: parseTime(timestamp) ?? 0, windowMs: windowSeconds === undefined ? WINDOW_MS : windowSeconds * 1000 },
      ]));
    },
    async object({ namespace, object: { apiVersion = "", kind, name }, metric, metricSelector, signal }) {
      const { group } = parseApiVersion(apiVersion === "" ? "v1" : apiVersion);
      const path = async (): Promise<string> => `${await customApi(client, signal)}/namespaces/${pathPart(namespace, "namespace")}/${kind === "Namespace" && group === "" ? "metrics" : `${await qualifiedPlural(client, { group, kind }, signal)}/${pathPart(name)}`}/${pathPart(metric, "metric name")}`;
      const [value, ...others] = await fetched<CustomValue>("custom", path, { metricLabelSelector: selectorText(metricSelector) }, signal);
      if (value === undefined || others.length > 0) throw new Error(`unable to fetch metrics from custom metrics API: the custom metrics API server returned ${value === undefined ? 0 : others.length + 1} results when we asked for exactly one`);
      return parseQuantity(value.value).milliNumber();
    },
    async external({ namespace, metric, metricSelector, signal }) {
      const all = await items<ExternalValue>("external", `${EXTERNAL}/namespaces/${pathPart(namespace, "namespace")}/${pathPart(metric, "metric name")}`, { labelSelector: selectorText(metricSelector) }, signal);
      return all.reduce((sum, { value }) => sum + parseQuantity(value).milliNumber(), 0);
    },
  };
}

interface ApiGroup { readonly preferredVersion?: { readonly version: string }; readonly versions: readonly { readonly version: string }[] }

/** In the version that the adapter prefers of those we know: one serves v1beta1 alone. Throws an Error for the user. Source: k8s.io/metrics pkg/client/custom_metrics/discovery.go */
async function customApi(client: Client, signal: AbortSignal): Promise<string> {
  const group = await client.request({ method: "GET", path: `/apis/${CUSTOM}`, signal }).catch((cause: unknown) => {
    throw isNotFound(cause) ? new Error(`no custom metrics API (${CUSTOM}) registered`, { cause }) : cause;
  }) as ApiGroup;
  const found = [group.preferredVersion, ...group.versions].find((one) => one !== undefined && CUSTOM_VERSIONS.includes(one.version));
  if (!found) throw new Error("no known available metric versions found");
  return `/apis/${CUSTOM}/${found.version}`;
}

/** Of a kind in whichever version it is served. Throws an Error for the user when there is no such kind. */
async function qualifiedPlural(client: Client, { group, kind }: { readonly group: string; readonly kind: string }, signal: AbortSignal): Promise<string> {
  const within = (name: string): string => (group === "" ? name : `${name}.${group}`);
  try {
    return within((await servedAs(client, { group, kind }, signal)).plural);
  } catch (cause) {
    throw new Error(`unable to map kind ${within(kind)} to resource: ${messageOf(cause)}`, { cause });
  }
}
