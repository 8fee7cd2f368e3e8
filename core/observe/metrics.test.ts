import { expect, test } from "vitest";
import { exponential, metricsRegistry, Observations } from "./metrics.ts";

test("samples in the text format: series kept or named each time are the same, buckets add up, what has no sample is not shown", () => {
  const metrics = metricsRegistry();
  const requests = metrics.counter("requests_total", "Requests.");
  requests.with({ code: "200" }).inc();
  requests.inc({ code: "200" }, 2);
  const duration = metrics.histogram("duration_seconds", "Durations.", [0.1, 1]);
  for (const value of [0.1, 0.5, 7]) duration.with({ verb: "GET" }).observe(value);
  metrics.gauge("unused", "Nothing.");
  metrics.counterFrom("read_total", "Read,\n\tby path \\ none.", () => [[{ path: 'a"b\n' }, 5]]);
  expect(metrics.render()).toBe(`# HELP disabled_metrics_total [BETA] The count of disabled metrics.
# TYPE disabled_metrics_total counter
disabled_metrics_total 0
# HELP duration_seconds Durations.
# TYPE duration_seconds histogram
duration_seconds_bucket{verb="GET",le="0.1"} 1
duration_seconds_bucket{verb="GET",le="1"} 2
duration_seconds_bucket{verb="GET",le="+Inf"} 3
duration_seconds_sum{verb="GET"} 7.6
duration_seconds_count{verb="GET"} 3
# HELP hidden_metrics_total [BETA] The count of hidden metrics.
# TYPE hidden_metrics_total counter
hidden_metrics_total 0
# HELP read_total Read,\\n	by path \\\\ none.
# TYPE read_total counter
read_total{path="a\\"b\\n"} 5
# HELP registered_metrics_total [BETA] The count of registered metrics broken by stability level and deprecation version.
# TYPE registered_metrics_total counter
registered_metrics_total{deprecated_version="",stability_level=""} 4
# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{code="200"} 3
`);
});

test("what is disabled is not shown, and counted", () => {
  const metrics = metricsRegistry();
  metrics.gauge("kept", "[ALPHA] A.").set(1);
  metrics.gauge("dropped", "[STABLE] B.").set(1);
  metrics.disable(["dropped"]);
  expect(metrics.render()).toMatch(/^[\s\S]*disabled_metrics_total 1\n[\s\S]*hidden_metrics_total 0\n# HELP kept \[ALPHA\] A\.\n# TYPE kept gauge\nkept 1\n[\s\S]*registered_metrics_total\{deprecated_version="",stability_level="STABLE"\} 1\n$/);
});

test("label values that are not on the list are counted together", () => {
  const metrics = metricsRegistry();
  metrics.allowLabels(new Map([["a_total", new Map([["code", new Set(["200", "404"])]])], ["b_seconds", new Map([["verb", new Set(["GET"])]])]]));
  const a = metrics.counter("a_total", "[ALPHA] A.");
  const b = metrics.histogram("b_seconds", "[ALPHA] B.", [1]);
  for (const code of ["200", "404", "500", "418"]) a.inc({ code, verb: "GET" });
  a.with({ verb: "GET" }).inc(); // without the label
  for (const verb of ["GET", "PUT", "POST"]) b.observe(0, { verb });
  metrics.counter("c_total", "[ALPHA] C.").inc({ code: "500" });
  const text = metrics.render();
  for (const line of ['a_total{code="200",verb="GET"} 1', 'a_total{code="unexpected",verb="GET"} 2', 'a_total{verb="GET"} 1', 'b_seconds_count{verb="unexpected"} 2', 'b_seconds_count{verb="GET"} 1', 'c_total{code="500"} 1', "cardinality_enforcement_unexpected_categorizations_total 4"])
    expect(text.split("\n")).toContain(line);
});

test("labels of what is read when it is scraped are told apart as little", () => {
  const metrics = metricsRegistry();
  const kinds = new Map([["kind", new Set(["a"])]]);
  metrics.allowLabels(new Map([["now", kinds], ["ever_total", kinds]]));
  const read = () => [[{ kind: "a" }, 1], [{ kind: "b" }, 2], [{ kind: "c" }, 3]] as const;
  metrics.gaugeFrom("now", "[STABLE] Now.", read);
  metrics.counterFrom("ever_total", "[STABLE] Ever.", read);
  const samples = metrics.render().split("\n").filter((line) => /^(now|ever)/.test(line));
  expect(samples).toEqual(['ever_total{kind="a"} 1', 'ever_total{kind="unexpected"} 5', 'now{kind="a"} 1', 'now{kind="unexpected"} 3']);
});

test("what is deprecated says since when, and is counted as such", () => {
  const metrics = metricsRegistry();
  metrics.gauge("old", "[STABLE] (Deprecated since 1.34.0) Old.").set(1);
  metrics.gauge("new", "[STABLE] New.").set(1);
  expect(metrics.render()).toContain('registered_metrics_total{deprecated_version="1.34.0",stability_level="STABLE"} 1\nregistered_metrics_total{deprecated_version="",stability_level="STABLE"} 1\n');
});

test("what is removed and comes again while a family is written is told once", () => {
  const metrics = metricsRegistry();
  const seconds = metrics.histogram("seconds", "Long.", [1]), total = metrics.counter("total", "All.");
  const levels = new Map([["a", 1], ["b", 2]]);
  metrics.gaugeFrom("level", "High.", function* () { for (const [name, value] of levels) yield [{ name }, value] as const; });
  for (const name of ["a", "b"]) {
    seconds.observe(1, { name });
    total.inc({ name });
  }
  const told: string[] = [];
  for (const { name: family, series } of metrics.families((name) => ["seconds", "total", "level"].includes(name)))
    for (const one of series()) {
      told.push(`${family} ${/name="(\w)"/.exec(one)![1]}`);
      seconds.remove({ name: "a" });
      seconds.observe(1, { name: "a" });
      total.remove({ name: "a" });
      total.inc({ name: "a" });
      levels.delete("a");
      levels.set("a", 1);
      if (told.length > 20) break;
    }
  expect(new Set(told).size).toBe(told.length);
});

test("a metric has one owner", () => {
  const metrics = metricsRegistry();
  metrics.gauge("a", "");
  expect(() => metrics.gauge("a", "")).toThrow("registered twice");
});

test("bounds of buckets are labels, written as Go writes numbers", () => {
  const metrics = metricsRegistry();
  metrics.histogram("sizes", "", [0.000025, 0.5, 1000, 1_000_000, 2_592_000]).observe(2);
  expect([...metrics.render().matchAll(/sizes_bucket\{le="([^"]*)"\}/g)].map(([, le]) => le)).toEqual(["2.5e-05", "0.5", "1000", "1e+06", "2.592e+06", "+Inf"]);
});

test("families and labels are shown by name, in whichever order they were counted", () => {
  const metrics = metricsRegistry();
  const b = metrics.counter("b_total", "");
  b.with({ verb: "GET", code: "200" }).inc();
  metrics.histogram("a_seconds", "", [1]).observe(0, { z: "1", a: "2" });
  metrics.gaugeFrom("c", "", () => [[{ y: "1", x: "2" }, 3]]);
  expect(metrics.render().split("\n").filter((line) => /^[abc](_|\{)/.test(line))).toEqual(['a_seconds_bucket{a="2",z="1",le="1"} 1', 'a_seconds_bucket{a="2",z="1",le="+Inf"} 1', 'a_seconds_sum{a="2",z="1"} 0', 'a_seconds_count{a="2",z="1"} 1', 'b_total{code="200",verb="GET"} 1', 'c{x="2",y="1"} 3']);
});

test("bounds that grow by a factor have the errors of growing so, which are in upstream's labels", () => {
  expect(exponential(1e-8, 10, 5)).toEqual([1e-8, 1e-7, 1e-6, 9.999999999999999e-6, 9.999999999999999e-5]);
});

test("what was counted begins anew: not shown until it is counted again, by whoever kept its series, too; gauges and what has no labels stay", () => {
  const metrics = metricsRegistry();
  const counter = metrics.counter("a_total", ""), kept = counter.with({ x: "1" }), plain = metrics.counter("b_total", ""), histogram = metrics.histogram("c_seconds", "", [1]).with({ x: "1" }), gauge = metrics.gauge("d", "");
  let elsewhere = 5;
  const own = new Observations({ x: "2" }, [1]);
  metrics.counterFrom("e_total", "", () => [[{ x: "1" }, elsewhere]]);
  metrics.histogramFrom("f_seconds", "", () => [own]);
  const count = (): void => {
    kept.inc(2);
    plain.inc();
    histogram.observe(0.5);
    own.observe(0.5);
  };
  const lines = (): string[] => metrics.render().split("\n").filter((line) => /^[a-f]_?[a-z]* ?/.test(line) && !/^(#|registered|disabled|.*_bucket|.*_sum)/.test(line) && line !== "");
  count();
  gauge.set(3, { x: "1" });
  metrics.reset((family) => family !== "f_seconds");
  expect(lines()).toEqual(["b_total 1", 'd{x="1"} 3', 'f_seconds_count{x="2"} 1']);
  metrics.reset();
  count();
  elsewhere += 2;
  expect(lines()).toEqual(['a_total{x="1"} 2', "b_total 2", 'c_seconds_count{x="1"} 1', 'd{x="1"} 3', 'e_total{x="1"} 2', 'f_seconds_count{x="2"} 1']);
});
