/** The eviction settings of a KubeletConfiguration. Source: kubernetes v1.36 pkg/kubelet/eviction/helpers.go (ParseThresholdConfig), cmd/kubelet (mergeDefaultEvictionSettings) */
import { parseQuantity } from "../../../core/api/meta/quantity.ts";
import { type Amount, type EvictionSettings, isSignal, type Signal, type Threshold, THRESHOLDS, WINDOWS_THRESHOLDS } from "../eviction/plan.ts";
import { parseGoDuration } from "./go-duration.ts";

type Texts = Readonly<Record<string, string>>;

export function evictionThresholds(configuration: Readonly<Record<string, unknown>>, { os, before }: { readonly os: "linux" | "windows"; readonly before: EvictionSettings }): EvictionSettings {
  const texts = (name: string): Texts | undefined => configuration[name] as Texts | undefined;
  const hard = texts("evictionHard");
  const defaults = os === "windows" ? WINDOWS_THRESHOLDS : THRESHOLDS;
  const merge = configuration["mergeDefaultEvictionSettings"] === true;
  const graces = texts("evictionSoftGracePeriod") ?? {};
  const reclaims = texts("evictionMinimumReclaim") ?? {};
  const thresholds: Threshold[] = hard === undefined ? before.thresholds.filter(({ graceMs }) => graceMs === undefined) : [
    ...entries(hard).map(([signal, text]) => ({ signal, value: amountOf(text) })),
    ...(merge ? defaults.filter(({ signal }) => hard[signal] === undefined) : []),
  ];
  for (const [signal, text] of entries(texts("evictionSoft") ?? {})) {
    const grace = graces[signal];
    if (grace === undefined) throw new Error(`grace period must be specified for the soft eviction threshold ${signal}`);
    thresholds.push({ signal, value: amountOf(text), graceMs: parseGoDuration(grace) });
  }
  const transition = configuration["evictionPressureTransitionPeriod"] as string | undefined;
  return {
    thresholds: thresholds.filter(({ value }) => !isNone(value)).map((threshold) => (reclaims[threshold.signal] === undefined ? threshold : { ...threshold, minReclaim: amountOf(reclaims[threshold.signal]!) })),
    transitionMs: transition === undefined || parseGoDuration(transition) === 0 ? before.transitionMs : parseGoDuration(transition),
    maxPodGraceSeconds: (configuration["evictionMaxPodGracePeriod"] as number | undefined) ?? before.maxPodGraceSeconds,
  };
}

function entries(texts: Texts): [Signal, string][] {
  return Object.entries(texts).map(([name, text]) => {
    if (!isSignal(name)) throw new Error(`unsupported eviction signal ${name}`);
    return [name, text];
  });
}

/** "0%" and "100%" switch a threshold off. */
function isNone(value: Amount): boolean {
  return "fraction" in value && (value.fraction === 0 || value.fraction === 1);
}

function amountOf(text: string): Amount {
  if (!text.endsWith("%")) {
    const bytes = parseQuantity(text).number();
    if (bytes < 0) throw new Error(`eviction threshold ${text} must be positive`);
    return { bytes };
  }
  const percent = Number(text.slice(0, -1));
  if (!(percent >= 0 && percent <= 100)) throw new Error(`eviction percentage threshold ${text} must be >= 0% and <= 100%`);
  return { fraction: percent / 100 };
}
