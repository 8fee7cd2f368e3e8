/**
 * Which metrics the server shows, and how many series they may have: --disabled-metrics, --allow-metric-labels, --allow-metric-labels-manifest,
 * --show-hidden-metrics-for-version. Nothing of ours is hidden; the last one is checked as upstream does.
 *
 * Source: kubernetes v1.36 component-base/metrics/{options.go,api/v1/config.go}
 */
import type { LabelAllowLists, Metrics } from "../core/observe/metrics.ts";
import type { ApiServerArgs } from "./apiserver-args.ts";
import { ConfigError, readText } from "./config/config.ts";
import { readYamlSettings } from "./config/yaml-settings.ts";
import { KUBERNETES_VERSION } from "./version.ts";

const KEY = /^[a-zA-Z_:][a-zA-Z0-9_:]*,[a-zA-Z_][a-zA-Z0-9_]*$/;
const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;

/** Before anything is counted. Throws ConfigError. */
export function applyMetricsSettings(args: ApiServerArgs, metrics: Pick<Metrics, "disable" | "allowLabels">): void {
  const previous = `${KUBERNETES_VERSION.major}.${Number(KUBERNETES_VERSION.minor) - 1}`;
  const hidden = args.text("show-hidden-metrics-for-version") ?? "";
  if (hidden !== "" && hidden !== previous) throw refuse("show-hidden-metrics-for-version", hidden, `must be omitted or have the value '${previous}'; only the previous minor version is allowed`);
  const disabled = args.list("disabled-metrics");
  const wrong = disabled.find((name) => !NAME.test(name));
  if (wrong !== undefined) throw refuse("disabled-metrics", wrong, `must be fully qualified metric names matching ${JSON.stringify(NAME.source)}, got ${JSON.stringify(wrong)}`);
  metrics.disable(disabled);
  const flags = args.texts("allow-metric-labels").flatMap(pairsOf);
  const manifest = args.text("allow-metric-labels-manifest");
  if (flags.length > 0 && manifest !== undefined) throw new ConfigError("--kube-apiserver-arg: cannot specify both allow-metric-labels and allow-metric-labels-manifest");
  const pairs = manifest === undefined ? flags : readManifest(manifest);
  metrics.allowLabels(listsOf(pairs));
}

type Pair = readonly [key: string, values: string];

/** "metric,label=v1,v2", or several of that form, each in double quotes with commas between. */
function pairsOf(text: string): readonly Pair[] {
  const parts = (text.match(/=/g) ?? []).length === 1 ? [text.replace(/^"|"$/g, "")] : [...text.matchAll(/"((?:[^"]|"")*)"(?:,|$)|([^",]+)(?:,|$)/g)].map(([, quoted, plain]) => quoted ?? plain!);
  return parts.map((part): Pair => {
    const at = part.indexOf("=");
    if (at < 0) throw refuse("allow-metric-labels", text, `${part} must be formatted as key=value`);
    return [part.slice(0, at).trim(), part.slice(at + 1).replace(/^'|'$/g, "")];
  });
}

function readManifest(path: string): readonly Pair[] {
  const text = readText(path);
  if (text === undefined) throw refuse("allow-metric-labels-manifest", path, "failed to read allow list manifest: no such file");
  const found = readYamlSettings(text) as unknown;
  const entries = typeof found === "object" && found !== null ? Object.entries(found) : [];
  if (!entries.every((entry): entry is [string, string] => typeof entry[1] === "string")) throw refuse("allow-metric-labels-manifest", path, "failed to parse allow list manifest: all values must be strings");
  return entries;
}

function listsOf(pairs: readonly Pair[]): LabelAllowLists {
  const lists = new Map<string, Map<string, ReadonlySet<string>>>();
  for (const [key, values] of pairs) {
    if (!KEY.test(key)) throw refuse("allow-metric-labels", key, "must have keys with format `metricName,labelName`");
    const [metric, label] = key.split(",") as [string, string];
    lists.set(metric, (lists.get(metric) ?? new Map<string, ReadonlySet<string>>()).set(label, new Set(values.split(","))));
  }
  return lists;
}

function refuse(name: string, value: string, why: string): ConfigError { return new ConfigError(`--kube-apiserver-arg ${name}: Invalid value: ${JSON.stringify(value)}: ${why}`); }
