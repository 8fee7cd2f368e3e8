/**
 * Metrics in the Prometheus text format. A registry is made by the composition root and passed in; each part registers
 * its metrics where it counts them. Names carry their unit as suffix and follow upstream's where upstream has one.
 */
export type Labels = Readonly<Record<string, string>>;

export interface Counter { inc(labels?: Labels, by?: number): void }
export interface Gauge { set(value: number, labels?: Labels): void; add(by: number, labels?: Labels): void }
export interface Histogram { observe(value: number, labels?: Labels): void }

export interface Metrics {
  counter(name: string, help: string): Counter;
  gauge(name: string, help: string): Gauge;
  /** A gauge whose samples are read when scraped. */
  gaugeFrom(name: string, help: string, read: () => Iterable<readonly [Labels, number]>): void;
  histogram(name: string, help: string, buckets: readonly number[]): Histogram;
  /** All samples, text exposition format 0.0.4. */
  render(): string;
}

/** Series a metric may have: past that, new label sets are folded away rather than eating memory. */
const SERIES_MAX = 10_000;

interface Family { readonly name: string; readonly help: string; readonly type: string; lines(): Iterable<string> }

export function metricsRegistry(): Metrics {
  const families = new Map<string, Family>();

  function register<F extends Family>(family: F): F {
    if (families.has(family.name)) throw new Error(`metric ${family.name} is registered twice`);
    families.set(family.name, family);
    return family;
  }

  function values(name: string, help: string, type: string) {
    const samples = new Map<string, number>();
    const family = register({
      name, help, type,
      *lines() { for (const [labels, value] of samples) yield `${name}${labels} ${value}`; },
    });
    const add = (labels: Labels | undefined, by: number): void => {
      const key = format(labels);
      const before = samples.get(key);
      if (before === undefined && samples.size >= SERIES_MAX) return;
      samples.set(key, (before ?? 0) + by);
    };
    return { family, samples, add };
  }

  return {
    counter(name, help) {
      const { add } = values(name, help, "counter");
      return { inc: (labels, by = 1) => add(labels, by) };
    },
    gauge(name, help) {
      const { add, samples } = values(name, help, "gauge");
      return { set: (value, labels) => void samples.set(format(labels), value), add: (by, labels) => add(labels, by) };
    },
    gaugeFrom(name, help, read) {
      register({ name, help, type: "gauge", *lines() { for (const [labels, value] of read()) yield `${name}${format(labels)} ${value}`; } });
    },
    histogram(name, help, buckets) {
      const series = new Map<string, { labels: Labels; counts: number[]; sum: number; count: number }>();
      register({
        name, help, type: "histogram",
        *lines() {
          for (const { labels, counts, sum, count } of series.values()) {
            for (const [i, le] of buckets.entries()) yield `${name}_bucket${format({ ...labels, le: String(le) })} ${counts[i]}`;
            yield `${name}_bucket${format({ ...labels, le: "+Inf" })} ${count}`;
            yield `${name}_sum${format(labels)} ${sum}`;
            yield `${name}_count${format(labels)} ${count}`;
          }
        },
      });
      return {
        observe(value, labels = {}) {
          const key = format(labels);
          let one = series.get(key);
          if (!one) {
            if (series.size >= SERIES_MAX) return;
            series.set(key, (one = { labels, counts: buckets.map(() => 0), sum: 0, count: 0 }));
          }
          for (const [i, le] of buckets.entries()) if (value <= le) one.counts[i]!++;
          one.sum += value;
          one.count++;
        },
      };
    },
    render() {
      const out: string[] = [];
      for (const { name, help, type, lines } of families.values()) {
        out.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
        for (const line of lines()) out.push(line);
      }
      return `${out.join("\n")}\n`;
    },
  };
}

function format(labels: Labels | undefined): string {
  const entries = Object.entries(labels ?? {});
  if (entries.length === 0) return "";
  return `{${entries.map(([name, value]) => `${name}="${value.replace(/[\\"\n]/g, (c) => (c === "\n" ? "\\n" : `\\${c}`))}"`).join(",")}}`;
}
