/**
 * Metrics for a part that is made anew again and again in one process, as what runs only while this server leads: each metric is registered the
 * first time, and the same one handed out from then on. Counts go on; a gauge that is read shows the newest part's.
 */
import type { Counter, Gauge, Histogram, Labels, Metrics, Observations } from "./metrics.ts";

export function reusableMetrics(metrics: Metrics): Metrics {
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();
  const observations = new Map<string, () => Iterable<Observations>>();
  const reads = new Map<string, () => Iterable<readonly [Labels, number]>>();

  function once<T>(known: Map<string, T>, name: string, make: () => T): T {
    const found = known.get(name) ?? make();
    known.set(name, found);
    return found;
  }

  return {
    counter: (name, help) => once(counters, name, () => metrics.counter(name, help)),
    gauge: (name, help) => once(gauges, name, () => metrics.gauge(name, help)),
    histogram: (name, help, buckets) => once(histograms, name, () => metrics.histogram(name, help, buckets)),
    gaugeFrom(name, help, read) {
      if (!reads.has(name)) metrics.gaugeFrom(name, help, () => reads.get(name)!());
      reads.set(name, read);
    },
    counterFrom(name, help, read) {
      if (!reads.has(name)) metrics.counterFrom(name, help, () => reads.get(name)!());
      reads.set(name, read);
    },
    histogramFrom: (name, help, read) => {
      const reads = observations.get(name);
      observations.set(name, read);
      if (!reads) metrics.histogramFrom(name, help, () => observations.get(name)!());
    },
    disable: (names) => metrics.disable(names),
    allowLabels: (lists) => metrics.allowLabels(lists),
    reset: (shown) => metrics.reset(shown),
    render: (shown) => metrics.render(shown),
    families: (shown) => metrics.families(shown),
  };
}
