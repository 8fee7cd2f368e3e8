/**
 * Metrics in the form that was asked for: the text format, or, as Prometheus asks for them when it wants all that histograms can tell, protobuf.
 *
 *   expose(metrics.render(), request.header("accept"))          { contentType, body }
 *   exposeSlowly(metrics.families(), request.header("accept"))  { contentType, pieces }: written as they are taken, where there may be a million samples
 *
 * What is asked for as OpenMetrics is told as text, as upstream's components do.
 *
 * Source: prometheus/common v0.67 expfmt/encode.go (Negotiate); API: https://github.com/prometheus/client_model/blob/v0.6.2/io/prometheus/client/metrics.proto
 */
import { doubleField, intField, nest, textField } from "../protobuf/fields.ts";
import { BackwardWriter } from "../protobuf/wire.ts";
import { type Family, texts } from "./metrics.ts";

export interface Exposition { readonly contentType: string; readonly body: string | Uint8Array }
export interface SlowExposition { readonly contentType: string; readonly pieces: Iterable<string | Uint8Array> }

const ESCAPINGS: ReadonlySet<string> = new Set(["allow-utf-8", "underscores", "dots", "values"]);
const TYPES: Readonly<Record<string, number>> = { counter: 0, gauge: 1, summary: 2, untyped: 3, histogram: 4 };

/** So much is written at a time. */
const PIECE_LENGTH = 16 * 1024;

/** `text`: in the format 0.0.4, families one after another. */
export function expose(text: string, accept: string | undefined): Exposition {
  const { contentType, isProtobuf } = formFor(accept);
  return { contentType, body: isProtobuf ? Buffer.concat([...text.split(/^(?=# HELP )/m).flatMap(familyIn)].flatMap((family) => [...delimited(family)])) : text };
}

export function exposeSlowly(families: Iterable<Family>, accept: string | undefined): SlowExposition {
  const { contentType, isProtobuf } = formFor(accept);
  return { contentType, pieces: isProtobuf ? delimitedOf(families) : together(texts(families)) };
}

function formFor(accept = ""): { readonly contentType: string; readonly isProtobuf: boolean } {
  let escaping = "underscores";
  for (const { type, parameters } of clausesOf(accept)) {
    const asked = parameters.get("escaping");
    if (asked !== undefined && ESCAPINGS.has(asked)) escaping = asked;
    if (type === "application/vnd.google.protobuf" && parameters.get("proto") === "io.prometheus.client.MetricFamily" && parameters.get("encoding") === "delimited")
      return { contentType: `application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=${escaping}`, isProtobuf: true };
    if (type === "text/plain" && ["", "0.0.4"].includes(parameters.get("version") ?? "")) break;
  }
  return { contentType: `text/plain; version=0.0.4; charset=utf-8; escaping=${escaping}`, isProtobuf: false };
}

function* together(texts: Iterable<string>): Iterable<string> {
  let piece = "";
  for (const text of texts) {
    piece += text;
    if (piece.length < PIECE_LENGTH) continue;
    yield piece;
    piece = "";
  }
  if (piece !== "") yield piece;
}

/** The most wanted first. */
function clausesOf(accept: string): { readonly type: string; readonly parameters: ReadonlyMap<string, string>; readonly q: number }[] {
  const clauses = accept.split(",").map((clause) => {
    const [type = "", ...rest] = clause.split(";").map((part) => part.trim());
    const parameters = new Map(rest.map((part) => [part.split("=")[0]!.trim(), part.split("=").slice(1).join("=").trim()]));
    return { type, parameters, q: Number(parameters.get("q") ?? 1) || 0 };
  });
  return clauses.toSorted((a, b) => b.q - a.q);
}

/** Of text in the format 0.0.4: one, or none. */
function familyIn(text: string): readonly Family[] {
  const [help = "", type = "", ...lines] = text.split("\n").filter((line) => line !== "");
  if (!help.startsWith("# HELP ")) return [];
  const [, , name = ""] = help.split(" ", 3);
  return [{ name, help: unescaped(help.slice(`# HELP ${name} `.length)), type: type.split(" ")[3] ?? "untyped", series: () => (lines.length === 0 ? [] : [lines.join("\n")]) }];
}

function* delimitedOf(families: Iterable<Family>): Iterable<Uint8Array> {
  for (const family of families) yield* delimited(family);
}

/** A family with its length before it: what there is of it is known once all of it is written. Empty pieces come before: whoever takes them may pause. */
function* delimited({ name, help, type, series }: Family): Iterable<Uint8Array> {
  const written: Uint8Array[] = [];
  const writer = new BackwardWriter();
  for (const text of together(eachOnItsLine(series()))) {
    const lines = text.trimEnd().split("\n");
    if (type === "histogram") for (const one of histogramsOf(name, lines).toReversed()) writeHistogram(writer, one);
    else for (const line of lines.toReversed()) writeValue(writer, type, sampleOf(line));
    written.push(writer.take());
    yield NOTHING;
  }
  if (written.length === 0) return; // nothing was counted yet
  const length = written.reduce((sum, one) => sum + one.length, 0);
  intField(writer, 3, TYPES[type] ?? 3);
  textField(writer, 2, help);
  textField(writer, 1, name);
  writer.varint(writer.length + length);
  yield writer.take();
  yield* written;
}

const NOTHING = new Uint8Array();

function* eachOnItsLine(series: Iterable<string>): Iterable<string> { for (const one of series) yield `${one}\n`; }

type Labels = readonly (readonly [name: string, value: string])[];

/** `atMs`: since 1970, of what was seen before it was asked for. */
interface Sample { readonly name: string; readonly labels: Labels; readonly value: number; readonly atMs: number | undefined }

interface Bucket { readonly count: number; readonly upTo: number }
interface Histogram { readonly labels: Labels; readonly buckets: readonly Bucket[]; readonly sum: number; readonly count: number }

const LINE = /^([^{ ]+)(?:\{(.*)\})? (\S+)(?: (\d+))?$/;

function sampleOf(line: string): Sample {
  const [, name = "", inside = "", shown = "", at] = LINE.exec(line) ?? [];
  const labels = [...inside.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label!, unescaped(text!)] as const);
  return { name, labels, value: numberOf(shown), atMs: at === undefined ? undefined : Number(at) };
}

/** Of each series there are its buckets, then its sum, then its count. */
function histogramsOf(family: string, lines: readonly string[]): Histogram[] {
  const found: Histogram[] = [];
  let buckets: Bucket[] = [], sum = 0;
  for (const line of lines) {
    const { name, labels, value } = sampleOf(line);
    if (name === `${family}_bucket`) buckets.push({ count: value, upTo: numberOf(labels.at(-1)![1]) });
    else if (name === `${family}_sum`) sum = value;
    else {
      found.push({ labels, buckets, sum, count: value });
      buckets = [];
    }
  }
  return found;
}

function writeValue(writer: BackwardWriter, kind: string, { labels, value, atMs }: Sample): void {
  nest(writer, 4, () => {
    if (atMs !== undefined) intField(writer, 6, atMs);
    nest(writer, kind === "gauge" ? 2 : kind === "counter" ? 3 : 5, () => doubleField(writer, 1, value));
    writeLabels(writer, labels);
  });
}

function writeHistogram(writer: BackwardWriter, { labels, buckets, sum, count }: Histogram): void {
  nest(writer, 4, () => {
    nest(writer, 7, () => {
      for (const bucket of buckets.toReversed())
        nest(writer, 3, () => {
          doubleField(writer, 2, bucket.upTo);
          intField(writer, 1, bucket.count);
        });
      doubleField(writer, 2, sum);
      intField(writer, 1, count);
    });
    writeLabels(writer, labels);
  });
}

function writeLabels(writer: BackwardWriter, labels: Labels): void {
  for (const [name, text] of labels.toReversed())
    nest(writer, 1, () => {
      textField(writer, 2, text);
      textField(writer, 1, name);
    });
}

function numberOf(shown: string): number { return shown === "+Inf" ? Number.POSITIVE_INFINITY : shown === "-Inf" ? Number.NEGATIVE_INFINITY : Number(shown); }

function unescaped(text: string): string { return text.replace(/\\(.)/g, (_, sign: string) => (sign === "n" ? "\n" : sign)); }
