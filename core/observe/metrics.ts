/**
 * Metrics in the Prometheus text format. A registry is made by the composition root and passed in; each part registers
 * its metrics where it counts them. Names carry their unit as suffix and follow upstream's where upstream has one.
 *
 * On a hot path, ask once for the series of a label set (`with`) and keep it: counting is then an addition.
 */
export type Labels = Readonly<Record<string, string>>;

export interface Counter {
  inc(labels?: Labels, by?: number): void;
  with(labels: Labels): { inc(by?: number): void };
  /** What it counted is gone: the series is not shown any more. */
  remove(labels: Labels): void;
}
export interface Gauge { set(value: number, labels?: Labels): void; add(by: number, labels?: Labels): void }
export interface Histogram {
  observe(value: number, labels?: Labels): void;
  with(labels: Labels): { observe(value: number): void };
  remove(labels: Labels): void;
}
/** Samples that are known elsewhere: read when scraped. */
export type ReadSamples = () => Iterable<readonly [Labels, number]>;

export type LabelAllowLists = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;

export interface Metrics {
  counter(name: string, help: string): Counter;
  gauge(name: string, help: string): Gauge;
  /** A gauge whose samples are read when scraped. */
  gaugeFrom(name: string, help: string, read: ReadSamples): void;
  /** The same for what only grows. */
  counterFrom(name: string, help: string, read: ReadSamples): void;
  histogram(name: string, help: string, buckets: readonly number[]): Histogram;
  /** A histogram whose series are kept elsewhere. */
  histogramFrom(name: string, help: string, read: () => Iterable<Observations>): void;
  /** These are not shown any more. */
  disable(names: Iterable<string>): void;
  /** By metric, then by label, the values that are told apart; all others are counted together, as "unexpected". To be said before anything is counted. */
  allowLabels(lists: LabelAllowLists): void;
  /** What was counted with labels begins anew, in the families that are `shown`, and is not shown before it is counted again. Gauges stay: what they tell of is still so. */
  reset(shown?: (family: string) => boolean): void;
  /** All samples, or those of the families that are `shown`, in the text exposition format 0.0.4. */
  render(shown?: (family: string) => boolean): string;
  /** The same, written as it is taken: of thousands of kinds there are a million samples. */
  families(shown?: (family: string) => boolean): Iterable<Family>;
}

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  /** The lines of one after another: a histogram's belong together. Those there are when the first is taken: one that is removed meanwhile, and comes again, would be told twice. */
  series(): Iterable<string>;
}

/** Buckets from 5 ms to 10 s, in seconds. Source: prometheus/client_golang DefBuckets */
export const DEFAULT_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Buckets of which each is twice the one before. */
export function doubling(first: number, count: number): readonly number[] { return exponential(first, 2, count); }

/** Buckets of which each is `factor` times the one before, with the errors of doing it one after the other, which are in upstream's labels. Source: prometheus/client_golang ExponentialBuckets */
export function exponential(first: number, factor: number, count: number): readonly number[] {
  const buckets = [first];
  while (buckets.length < count) buckets.push(buckets.at(-1)! * factor);
  return buckets;
}

/** The series of each of a few things, asked for once: for labels that are told apart by one text. */
export function seriesOf<T>(make: (key: string) => T): (key: string) => T {
  const known = new Map<string, T>();
  return (key) => {
    let one = known.get(key);
    if (one === undefined) {
      one = make(key);
      if (known.size < SERIES_MAX) known.set(key, one);
    }
    return one;
  };
}

/** Series a metric may have: past that, new label sets are folded away rather than eating memory. */
const SERIES_MAX = 10_000;

/** Source: component-base/metrics/options.go */
const UNEXPECTED = "unexpected";

interface Kept extends Family { reset?(): void }

export function metricsRegistry(): Metrics {
  const families = new Map<string, Kept>();
  const disabled = new Set<string>();
  let allowLists: LabelAllowLists = new Map();
  let unexpected = 0;

  /** The labels a sample is counted under. Source: component-base/metrics/options.go MetricLabelAllowList */
  function folded(name: string, labels: Labels | undefined): Labels | undefined {
    const lists = allowLists.size === 0 || labels === undefined ? undefined : allowLists.get(name);
    if (lists === undefined) return labels;
    const kept: Record<string, string> = { ...labels };
    for (const [label, values] of lists) {
      if (kept[label] === undefined || values.has(kept[label])) continue;
      kept[label] = UNEXPECTED;
      unexpected++;
    }
    return kept;
  }

  function register(family: Kept): void {
    if (families.has(family.name)) throw new Error(`metric ${family.name} is registered twice`);
    families.set(family.name, family);
  }

  function values(name: string, help: string, type: string): Series {
    const series = new Series((labels) => folded(name, labels));
    register({ name, help, type, *series() { for (const one of [...series.all.values()]) if (!(one.isReset && one.value === 0)) yield `${name}${one.text} ${sample(one.value)}`; }, ...(type === "counter" && { reset: () => series.reset() }) });
    return series;
  }

  function from(type: string): Metrics["gaugeFrom"] {
    return (name, help, read) => {
      const samples = (): ReturnType<ReadSamples> => (allowLists.has(name) ? together(name, type, read()) : read());
      let before = new Map<string, number>(); // what was counted until the reset
      register({
        name, help, type,
        *series() {
          for (const [labels, value] of [...samples()]) {
            const text = format(inOrder(labels)), since = before.get(text) ?? 0;
            if (since === 0 || value !== since) yield `${name}${text} ${sample(value < since ? value : value - since)}`; // less: who counts has begun anew
          }
        },
        ...(type === "counter" && { reset() { before = new Map([...samples()].flatMap(([labels, value]) => (Object.keys(labels).length > 0 ? [[format(inOrder(labels)), value] as const] : []))); } }),
      });
    };
  }

  /** Samples whose labels are the same once they are folded: what counts is added up, of all else the last one is shown. */
  function together(name: string, type: string, samples: ReturnType<ReadSamples>): ReturnType<ReadSamples> {
    const all = new Map<string, readonly [Labels, number]>();
    for (const [labels, value] of samples) {
      const kept = folded(name, labels)!, key = format(kept);
      all.set(key, [kept, type === "counter" ? value + (all.get(key)?.[1] ?? 0) : value]);
    }
    return all.values();
  }

  return {
    counter(name, help) {
      const series = values(name, help, "counter");
      return {
        inc(labels, by = 1) { series.of(labels).value += by; },
        with(labels) {
          const one = series.of(labels);
          return { inc(by = 1) { one.value += by; } };
        },
        remove: (labels) => series.remove(labels),
      };
    },
    gauge(name, help) {
      const series = values(name, help, "gauge");
      return { set(value, labels) { series.of(labels).value = value; }, add(by, labels) { series.of(labels).value += by; } };
    },
    gaugeFrom: from("gauge"),
    counterFrom: from("counter"),
    histogram(name, help, buckets) {
      const series = new Map<string, Observations>();
      register({ name, help, type: "histogram", series: () => shownOf(name, series.values()), reset() { for (const one of series.values()) one.reset(); } });
      function of(given: Labels): Observations {
        const labels = folded(name, given)!;
        const key = format(labels);
        const known = series.get(key);
        if (known) return known;
        const made = new Observations(labels, buckets);
        if (series.size < SERIES_MAX) series.set(key, made);
        return made;
      }
      return { observe: (value, labels = {}) => of(labels).observe(value), with: of, remove: (labels) => void series.delete(format(folded(name, labels))) };
    },
    histogramFrom(name, help, read) {
      register({ name, help, type: "histogram", series: () => shownOf(name, read()), reset() { for (const one of read()) one.reset(); } });
    },
    disable(names) {
      for (const name of names) disabled.add(name);
    },
    allowLabels(lists) {
      allowLists = lists;
      register({
        name: "cardinality_enforcement_unexpected_categorizations_total", help: "[ALPHA] The count of unexpected categorizations during cardinality enforcement.",
        type: "counter", *series() { yield `cardinality_enforcement_unexpected_categorizations_total ${unexpected}`; },
      });
    },
    reset(shown) {
      for (const { name, reset } of families.values()) if (shown?.(name) !== false) reset?.();
    },
    render: (shown) => textOf(shownFamilies(shown)),
    families: shownFamilies,
  };

  function shownFamilies(shown?: (family: string) => boolean): readonly Family[] {
    return [...families.values(), ...meta(families.values(), disabled, shown)].filter(({ name }) => !disabled.has(name) && shown?.(name) !== false).sort(byName);
  }
}

function textOf(families: Iterable<Family>): string { return [...texts(families)].join("") || "\n"; }

/** Of those that nothing was counted in yet there is none. */
export function* texts(families: Iterable<Family>): Iterable<string> {
  for (const { name, help, type, series } of families) {
    let head = `# HELP ${name} ${onOneLine(help)}\n# TYPE ${name} ${type}\n`;
    for (const one of series()) {
      yield `${head}${one}\n`;
      head = "";
    }
  }
}

/** Source: Prometheus' text format, escaping of HELP */
function onOneLine(help: string): string { return help.replace(/[\\\n]/g, (c) => (c === "\n" ? "\\n" : "\\\\")); }

function* shownOf(name: string, all: Iterable<Observations>): Iterable<string> {
  for (const one of [...all]) {
    const lines = one.lines(name);
    if (lines !== undefined) yield lines;
  }
}

/** As upstream's registries show them. */
function byName(a: Family, b: Family): number { return a.name < b.name ? -1 : 1; }

/** How many metrics there are, by how firmly upstream stands by them. Source: component-base/metrics/registry.go */
function meta(families: Iterable<Family>, disabled: ReadonlySet<string>, shown: (family: string) => boolean = () => true): Family[] {
  const all = [...families].filter(({ name }) => shown(name));
  const counts = (chosen: readonly Family[]) => [...Map.groupBy(chosen, ({ help }) => /^(?:\[(?:ALPHA|BETA|STABLE)\])?(?: ?\(Deprecated since [\d.]+\))?/.exec(help)![0])].map(([start, found]) => ({
    stability_level: /[A-Z]{2,}/.exec(start)?.[0] ?? "", deprecated_version: /since ([\d.]+)/.exec(start)?.[1] ?? "", count: found.length,
  }));
  const family = (name: string, help: string, lines: readonly string[]): Family => ({ name, help, type: "counter", series: () => lines });
  return [
    family(
      "registered_metrics_total", "[BETA] The count of registered metrics broken by stability level and deprecation version.",
      counts(all).map(({ deprecated_version, stability_level, count }) => `registered_metrics_total${format({ deprecated_version, stability_level })} ${count}`),
    ),
    family("disabled_metrics_total", "[BETA] The count of disabled metrics.", [`disabled_metrics_total ${all.filter((one) => disabled.has(one.name)).length}`]),
    family("hidden_metrics_total", "[BETA] The count of hidden metrics.", ["hidden_metrics_total 0"]), // those of earlier versions are not here at all
  ];
}

class Series {
  readonly all = new Map<string, { value: number; isReset: boolean; readonly text: string }>();
  readonly #fold: (labels: Labels | undefined) => Labels | undefined;

  constructor(fold: (labels: Labels | undefined) => Labels | undefined) { this.#fold = fold; }

  of(given: Labels | undefined): { value: number } {
    const labels = this.#fold(given);
    const key = format(labels);
    const known = this.all.get(key);
    if (known) return known;
    const made = { value: 0, isReset: false, text: format(inOrder(labels)) };
    if (this.all.size < SERIES_MAX) this.all.set(key, made);
    return made;
  }

  remove(labels: Labels): void {
    this.all.delete(format(this.#fold(labels)));
  }

  /** Whoever has kept one goes on counting in it. */
  reset(): void {
    for (const one of this.all.values()) if (one.text !== "") Object.assign(one, { value: 0, isReset: true });
  }
}

/** One series of a histogram. */
export class Observations {
  readonly #labels: Labels;
  readonly #buckets: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #isReset = false;

  constructor(labels: Labels, buckets: readonly number[]) {
    this.#labels = inOrder(labels);
    this.#buckets = buckets;
    this.#counts = new Array<number>(buckets.length + 1).fill(0);
  }

  observe(value: number, weight = 1): void {
    let at = 0;
    while (at < this.#buckets.length && value > this.#buckets[at]!) at++;
    this.#counts[at]! += weight;
    this.#sum += value * weight;
  }

  reset(): void {
    if (Object.keys(this.#labels).length === 0) return;
    this.#counts.fill(0);
    this.#sum = 0;
    this.#isReset = true;
  }

  get isEmpty(): boolean { return this.#counts.every((count) => count === 0); }

  /** All of them in one text: while they are counted, none of them would go with another. */
  lines(name: string): string | undefined {
    if (this.#isReset && this.isEmpty) return undefined;
    const labels = format(this.#labels), upTo = `${name}_bucket${labels === "" ? "{" : `${labels.slice(0, -1)},`}le="`;
    let below = 0, text = "";
    for (let i = 0; i < this.#buckets.length; i++) text += `${upTo}${bound(this.#buckets[i]!)}"} ${(below += this.#counts[i]!)}\n`;
    const count = below + this.#counts.at(-1)!;
    return `${text}${upTo}+Inf"} ${count}\n${name}_sum${labels} ${this.#sum}\n${name}_count${labels} ${count}`;
  }
}

/** As the format writes what has no digits. */
function sample(value: number): string { return value === Number.POSITIVE_INFINITY ? "+Inf" : value === Number.NEGATIVE_INFINITY ? "-Inf" : String(value); }

/** As Go's %g writes it, for it is a label: 1e+06, 2.5e-05. */
function bound(le: number): string {
  const size = Math.abs(le);
  if (size === 0 || (size >= 1e-4 && size < 1e6)) return String(le);
  const [mantissa, exponent] = le.toExponential().split("e") as [string, string];
  return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}

const ESCAPED = /[\\"\n]/;
const ESCAPED_ALL = /[\\"\n]/g;

/** By name, as upstream shows them, in whichever order they were given. */
export function inOrder(labels: Labels): Labels;
export function inOrder(labels: Labels | undefined): Labels | undefined;
export function inOrder(labels: Labels | undefined): Labels | undefined {
  if (labels === undefined) return undefined;
  const names = Object.keys(labels);
  return names.every((name, i) => i === 0 || names[i - 1]! < name) ? labels : Object.fromEntries(names.sort().map((name) => [name, labels[name]!]));
}

function format(labels: Labels | undefined): string {
  let text = "";
  for (const name in labels) {
    const value = labels[name]!;
    text += `${text === "" ? "{" : ","}${name}="${ESCAPED.test(value) ? value.replace(ESCAPED_ALL, (c) => (c === "\n" ? "\\n" : `\\${c}`)) : value}"`;
  }
  return text === "" ? "" : `${text}}`;
}
