/**
 * Metrics in the form that was asked for: the text format, or, as Prometheus asks for them when it wants all that histograms can tell, protobuf.
 *
 *   expose(metrics.render(), request.header("accept"))          { contentType, body }
 *
 * What is asked for as OpenMetrics is told as text, as upstream's components do.
 *
 * Source: prometheus/common v0.67 expfmt/encode.go (Negotiate); API: https://github.com/prometheus/client_model/blob/v0.6.2/io/prometheus/client/metrics.proto
 */
export interface Exposition { readonly contentType: string; readonly body: string | Uint8Array }

const ESCAPINGS: ReadonlySet<string> = new Set(["allow-utf-8", "underscores", "dots", "values"]);
const TYPES: Readonly<Record<string, number>> = { counter: 0, gauge: 1, summary: 2, untyped: 3, histogram: 4 };

/** `text`: in the format 0.0.4, families one after another. */
export function expose(text: string, accept: string | undefined): Exposition {
  let escaping = "underscores";
  for (const { type, parameters } of clausesOf(accept ?? "")) {
    const asked = parameters.get("escaping");
    if (asked !== undefined && ESCAPINGS.has(asked)) escaping = asked;
    if (type === "application/vnd.google.protobuf" && parameters.get("proto") === "io.prometheus.client.MetricFamily" && parameters.get("encoding") === "delimited")
      return { contentType: `application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=${escaping}`, body: delimited(text) };
    if (type === "text/plain" && ["", "0.0.4"].includes(parameters.get("version") ?? "")) break;
  }
  return { contentType: `text/plain; version=0.0.4; charset=utf-8; escaping=${escaping}`, body: text };
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

/** Each family with its length before it. */
function delimited(text: string): Uint8Array {
  const messages: Buffer[] = [];
  for (const family of text.split(/^(?=# HELP )/m)) {
    const [help = "", type = "", ...lines] = family.split("\n").filter((line) => line !== "");
    if (!help.startsWith("# HELP ")) continue;
    const [, , name = ""] = help.split(" ", 3);
    const kind = type.split(" ")[3] ?? "untyped";
    const message = Buffer.concat([field(1, name), field(2, unescaped(help.slice(`# HELP ${name} `.length))), number(3, TYPES[kind] ?? 3), ...(kind === "histogram" ? histograms(name, lines) : lines.map((line) => value(kind, line)))]);
    messages.push(varint(message.length), message);
  }
  return Buffer.concat(messages);
}

/** `atMs`: since 1970, of what was seen before it was asked for. */
interface Sample { readonly name: string; readonly labels: readonly (readonly [name: string, value: string])[]; readonly value: number; readonly atMs: number | undefined }

const LINE = /^([^{ ]+)(?:\{(.*)\})? (\S+)(?: (\d+))?$/;

function sampleOf(line: string): Sample {
  const [, name = "", inside = "", shown = "", at] = LINE.exec(line) ?? [];
  const labels = [...inside.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label!, unescaped(text!)] as const);
  return { name, labels, value: shown === "+Inf" ? Number.POSITIVE_INFINITY : shown === "-Inf" ? Number.NEGATIVE_INFINITY : Number(shown), atMs: at === undefined ? undefined : Number(at) };
}

function value(kind: string, line: string): Buffer {
  const { labels, value: is, atMs } = sampleOf(line);
  return field(4, Buffer.concat([...labels.map(pair), field(kind === "gauge" ? 2 : kind === "counter" ? 3 : 5, double(1, is)), ...(atMs === undefined ? [] : [number(6, atMs)])]));
}

/** Of each series its buckets, then its sum, then its count. */
function histograms(family: string, lines: readonly string[]): Buffer[] {
  const metrics: Buffer[] = [];
  let buckets: Buffer[] = [], sum = 0;
  for (const line of lines) {
    const { name, labels, value: is } = sampleOf(line);
    if (name === `${family}_bucket`) {
      const le = labels.at(-1)![1];
      buckets.push(field(3, Buffer.concat([number(1, is), double(2, le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le))])));
    } else if (name === `${family}_sum`) sum = is;
    else {
      metrics.push(field(4, Buffer.concat([...labels.map(pair), field(7, Buffer.concat([number(1, is), double(2, sum), ...buckets]))])));
      buckets = [];
    }
  }
  return metrics;
}

function pair([name, text]: readonly [string, string]): Buffer { return field(1, Buffer.concat([field(1, name), field(2, text)])); }

function unescaped(text: string): string { return text.replace(/\\(.)/g, (_, sign: string) => (sign === "n" ? "\n" : sign)); }

function field(at: number, content: string | Buffer): Buffer {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return Buffer.concat([varint(at * 8 + 2), varint(bytes.length), bytes]);
}

function number(at: number, is: number): Buffer { return Buffer.concat([varint(at * 8), varint(is)]); }

function double(at: number, is: number): Buffer {
  const bytes = Buffer.alloc(9);
  bytes[0] = at * 8 + 1;
  bytes.writeDoubleLE(is, 1);
  return bytes;
}

function varint(is: number): Buffer {
  const bytes: number[] = [];
  let rest = Math.max(0, Math.round(is));
  while (rest >= 128) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...bytes, rest]);
}
