/** Traces of the API server, as a TracingConfiguration file asks for them, and of the kubelet, as its configuration does. */
import { fieldsOf } from "../core/api/codec/strict-fields.ts";
import { parseStrictYaml } from "../core/api/codec/yaml.ts";
import { aggregate } from "../core/api/meta/aggregate.ts";
import { type FieldError, formatFieldError, invalid } from "../core/api/meta/field-error.ts";
import { parseUrl } from "../core/api/meta/go-url.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Random } from "../core/lifecycle/random.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";
import { noSpans, type Spans, spansFrom } from "../core/observe/spans.ts";
import { OtlpExporter } from "../core/server/tracing/exporter.ts";
import { rootSpans, tracer, type Tracer } from "../core/server/tracing/tracer.ts";
import type { Configuration as KubeletConfiguration } from "../node/kubelet/configuration/decode.ts";
import type { ApiServerArgs } from "./apiserver-args.ts";
import { fromFile } from "./config/config.ts";

const VERSIONS = ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];
const ENDPOINT = "localhost:4317";
const PER_MILLION = 1_000_000;

interface Deps { readonly instance: string; readonly env: Readonly<Record<string, string | undefined>>; readonly clock: Clock; readonly random: Random; readonly log: Log }

/** Throws ConfigError. */
export function tracingOf(args: ApiServerArgs, { instance, env, clock, random, log }: Deps): { readonly tracer: Tracer | undefined; readonly parts: readonly Runnable[] } {
  const path = args.text("tracing-config-file");
  if (path === undefined) return { tracer: undefined, parts: [] };
  const { endpoint, samplingRatePerMillion } = configurationIn(path);
  const resource = { "service.name": "apiserver", "service.instance.id": instance, ...pairs(env["OTEL_RESOURCE_ATTRIBUTES"]) };
  const exporter = new OtlpExporter({ endpoint, headers: pairs(env["OTEL_EXPORTER_OTLP_HEADERS"]), resource, clock, log });
  return { tracer: tracer({ samplingRatePerMillion, clock, random, record: (span) => exporter.record(span) }), parts: [exporter] };
}

function configurationIn(path: string): { readonly endpoint: string; readonly samplingRatePerMillion: number } {
  return fromFile("kube-apiserver-arg tracing-config-file", path, (text) => {
    const fields = fieldsOf(parseStrictYaml(text), { kind: "TracingConfiguration", apiVersions: VERSIONS });
    const endpoint = fields.has("endpoint") ? fields.text("endpoint") : ENDPOINT;
    const samplingRatePerMillion = fields.number("samplingRatePerMillion") ?? 0;
    fields.end();
    if (!Number.isInteger(samplingRatePerMillion)) throw new Error(`json: cannot unmarshal number ${samplingRatePerMillion} into Go struct field TracingConfiguration.samplingRatePerMillion of type int32`);
    const problems = [...rateProblems(samplingRatePerMillion), ...endpointProblems(endpoint)];
    if (problems.length > 0) throw new Error(`failed to validate tracing configuration: ${aggregate(problems.map(formatFieldError))}`);
    return { endpoint, samplingRatePerMillion };
  });
}

function rateProblems(rate: number): FieldError[] {
  if (rate < 0) return [invalid("samplingRatePerMillion", rate, "sampling rate must be positive")];
  return rate > PER_MILLION ? [invalid("samplingRatePerMillion", rate, "sampling rate per million must be less than or equal to one million")] : [];
}

/** Source: kubernetes v1.36 component-base/tracing/api/v1/config.go */
function endpointProblems(given: string): FieldError[] {
  const endpoint = given.includes("//") ? given : `dns://${given}`;
  let scheme: string;
  try {
    ({ scheme } = parseUrl(endpoint));
  } catch (error) {
    return [invalid("endpoint", endpoint, (error as Error).message)];
  }
  return ["dns", "unix", "unix-abstract"].includes(scheme) ? [] : [invalid("endpoint", endpoint, `unsupported scheme: ${scheme}.  Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md`)];
}

/** Those of the kubelet, as `tracing` of its configuration asks for them: looks at pods, and calls of the runtime within them. */
export function kubeletTracing(configuration: KubeletConfiguration, { instance, env, clock, random, log }: Deps): { readonly spans: Spans; readonly parts: readonly Runnable[] } {
  const { tracing } = configuration as { readonly tracing?: { readonly endpoint?: string; readonly samplingRatePerMillion?: number } };
  if (!tracing) return { spans: noSpans, parts: [] };
  const { endpoint = ENDPOINT, samplingRatePerMillion = 0 } = tracing;
  const resource = { "service.name": "kubelet", "service.instance.id": instance, ...pairs(env["OTEL_RESOURCE_ATTRIBUTES"]) };
  const exporter = new OtlpExporter({ endpoint, headers: pairs(env["OTEL_EXPORTER_OTLP_HEADERS"]), resource, clock, log });
  return { spans: spansFrom(rootSpans({ samplingRatePerMillion, clock, random, record: (span) => exporter.record(span) })), parts: [exporter] };
}

/** a=b,c=d, values percent-encoded. */
function pairs(text = ""): Record<string, string> {
  return Object.fromEntries(text.split(",").filter((one) => one.includes("=")).map((one) => [one.slice(0, one.indexOf("=")).trim(), decoded(one.slice(one.indexOf("=") + 1).trim())]));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray percent sign
  }
}
