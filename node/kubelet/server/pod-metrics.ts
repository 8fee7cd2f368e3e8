/**
 * /metrics/resource, and where there are no control groups the part of /metrics/cadvisor that dashboards use, from the same statistics as /stats/summary. Names and labels are
 * upstream's; a sample carries the time it was taken.
 *
 * Source: kubernetes v1.36 pkg/kubelet/metrics/collectors/resource_metrics.go, cadvisor metrics/prometheus.go
 */
import { inOrder } from "../../../core/observe/metrics.ts";
import type { StatsSummary } from "../kubelet-api.ts";

export type Labels = Readonly<Record<string, string>>;
export interface Sample { readonly labels: Labels; readonly value: number | undefined; readonly time?: string | undefined }
export interface Family { readonly name: string; readonly type: "gauge" | "counter"; readonly help: string; readonly samples: readonly Sample[] }

const NANOSECONDS = 1e9;

function seconds(nanoseconds: number | undefined): number | undefined { return nanoseconds === undefined ? undefined : nanoseconds / NANOSECONDS; }

/** Undefined: it could not be found out, which is told as such. */
export function resourceMetrics(summary: StatsSummary | undefined): string {
  const failed: Family = { name: "resource_scrape_error", type: "gauge", help: "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise", samples: [{ labels: {}, value: summary ? 0 : 1 }] };
  if (!summary) return renderFamilies([failed]);
  const { node, pods } = summary;
  const containers = pods.flatMap((pod) => pod.containers.map((one) => ({ one, labels: { container: one.name, namespace: pod.podRef.namespace, pod: pod.podRef.name } })));
  const podLabels = (pod: StatsSummary["pods"][number]): Labels => ({ namespace: pod.podRef.namespace, pod: pod.podRef.name });
  return renderFamilies([
    {
      name: "container_cpu_usage_seconds_total", type: "counter", help: "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
      samples: containers.map(({ one, labels }) => ({ labels, value: seconds(one.cpu?.usageCoreNanoSeconds), time: one.cpu?.time })),
    },
    { name: "container_memory_working_set_bytes", type: "gauge", help: "[STABLE] Current working set of the container in bytes", samples: containers.map(({ one, labels }) => ({ labels, value: one.memory?.workingSetBytes, time: one.memory?.time })) },
    { name: "container_start_time_seconds", type: "gauge", help: "[STABLE] Start time of the container since unix epoch in seconds", samples: containers.map(({ one, labels }) => ({ labels, value: Date.parse(one.startTime) / 1000 })) },
    {
      name: "container_swap_limit_bytes", type: "gauge", help: "[ALPHA] Current amount of the container swap limit in bytes. Reported only on non-windows systems",
      samples: containers.map(({ one: { swap }, labels }) => ({ labels, value: swap?.swapAvailableBytes === undefined ? undefined : swap.swapAvailableBytes + (swap.swapUsageBytes ?? 0), time: swap?.time })),
    },
    {
      name: "container_swap_usage_bytes", type: "gauge", help: "[ALPHA] Current amount of the container swap usage in bytes. Reported only on non-windows systems",
      samples: containers.map(({ one, labels }) => ({ labels, value: one.swap?.swapUsageBytes, time: one.swap?.time })),
    },
    { name: "node_cpu_usage_seconds_total", type: "counter", help: "[STABLE] Cumulative cpu time consumed by the node in core-seconds", samples: [{ labels: {}, value: seconds(node.cpu?.usageCoreNanoSeconds), time: node.cpu?.time }] },
    { name: "node_memory_working_set_bytes", type: "gauge", help: "[STABLE] Current working set of the node in bytes", samples: [{ labels: {}, value: node.memory?.workingSetBytes, time: node.memory?.time }] },
    { name: "node_swap_usage_bytes", type: "gauge", help: "[ALPHA] Current swap usage of the node in bytes. Reported only on non-windows systems", samples: [{ labels: {}, value: node.swap?.swapUsageBytes, time: node.swap?.time }] },
    {
      name: "pod_cpu_usage_seconds_total", type: "counter", help: "[STABLE] Cumulative cpu time consumed by the pod in core-seconds",
      samples: pods.map((pod) => ({ labels: podLabels(pod), value: seconds(pod.cpu?.usageCoreNanoSeconds), time: pod.cpu?.time })),
    },
    { name: "pod_memory_working_set_bytes", type: "gauge", help: "[STABLE] Current working set of the pod in bytes", samples: pods.map((pod) => ({ labels: podLabels(pod), value: pod.memory?.workingSetBytes, time: pod.memory?.time })) },
    {
      name: "pod_swap_usage_bytes", type: "gauge", help: "[ALPHA] Current amount of the pod swap usage in bytes. Reported only on non-windows systems",
      samples: pods.map((pod) => ({ labels: podLabels(pod), value: pod.swap?.swapUsageBytes, time: pod.swap?.time })),
    },
    failed,
  ]);
}

export function containerMetrics({ pods }: StatsSummary): string {
  const containers = pods.flatMap((pod) => pod.containers.map((one) => ({ one, labels: { container: one.name, namespace: pod.podRef.namespace, pod: pod.podRef.name } })));
  const interfaces = pods.flatMap((pod) => (pod.network ? [...(pod.network.interfaces ?? [pod.network])] : []).map((one) => ({ one, time: pod.network!.time, labels: { interface: one.name, namespace: pod.podRef.namespace, pod: pod.podRef.name } })));
  const perContainer = (name: string, type: Family["type"], help: string, value: (one: (typeof containers)[number]["one"]) => number | undefined, time: (one: (typeof containers)[number]["one"]) => string | undefined): Family =>
    ({ name, type, help, samples: containers.map(({ one, labels }) => ({ labels, value: value(one), time: time(one) })) });
  const perInterface = (name: string, help: string, value: (one: (typeof interfaces)[number]["one"]) => number | undefined): Family =>
    ({ name, type: "counter", help, samples: interfaces.map(({ one, labels, time }) => ({ labels, value: value(one), time })) });
  return renderFamilies([
    perContainer("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed in seconds.", ({ cpu }) => seconds(cpu?.usageCoreNanoSeconds), ({ cpu }) => cpu?.time),
    perContainer("container_memory_usage_bytes", "gauge", "Current memory usage in bytes, including all memory regardless of when it was accessed", ({ memory }) => memory?.usageBytes, ({ memory }) => memory?.time),
    perContainer("container_memory_working_set_bytes", "gauge", "Current working set in bytes.", ({ memory }) => memory?.workingSetBytes, ({ memory }) => memory?.time),
    perContainer("container_memory_rss", "gauge", "Size of RSS in bytes.", ({ memory }) => memory?.rssBytes, ({ memory }) => memory?.time),
    perContainer("container_memory_swap", "gauge", "Container swap usage in bytes.", ({ swap }) => swap?.swapUsageBytes, ({ swap }) => swap?.time),
    perContainer("container_fs_usage_bytes", "gauge", "Number of bytes that are consumed by the container on this filesystem.", ({ rootfs }) => rootfs?.usedBytes, ({ rootfs }) => rootfs?.time),
    perContainer("container_fs_inodes_total", "gauge", "Number of Inodes", ({ rootfs }) => rootfs?.inodes, ({ rootfs }) => rootfs?.time),
    perContainer("container_start_time_seconds", "gauge", "Start time of the container since unix epoch in seconds.", ({ startTime }) => Date.parse(startTime) / 1000, () => undefined),
    perInterface("container_network_receive_bytes_total", "Cumulative count of bytes received", ({ rxBytes }) => rxBytes),
    perInterface("container_network_receive_errors_total", "Cumulative count of errors encountered while receiving", ({ rxErrors }) => rxErrors),
    perInterface("container_network_transmit_bytes_total", "Cumulative count of bytes transmitted", ({ txBytes }) => txBytes),
    perInterface("container_network_transmit_errors_total", "Cumulative count of errors encountered while transmitting", ({ txErrors }) => txErrors),
  ]);
}

export function renderFamilies(families: readonly Family[]): string {
  const out: string[] = [];
  for (const { name, type, help, samples } of families) {
    const known = samples.filter(({ value }) => value !== undefined);
    if (known.length === 0) continue;
    out.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    for (const { labels, value, time } of known) {
      const pairs = Object.entries(inOrder(labels)).map(([label, text]) => `${label}="${text.replace(/[\\"\n]/g, (char) => (char === "\n" ? "\\n" : `\\${char}`))}"`).join(",");
      out.push(`${name}${pairs === "" ? "" : `{${pairs}}`} ${value}${time === undefined ? "" : ` ${Date.parse(time)}`}`);
    }
  }
  return `${out.join("\n")}\n`;
}
