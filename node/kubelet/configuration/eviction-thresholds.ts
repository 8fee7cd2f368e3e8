/** The eviction settings of a KubeletConfiguration. Source: kubernetes v1.36 pkg/kubelet/eviction/helpers.go (ParseThresholdConfig), cmd/kubelet (mergeDefaultEvictionSettings) */
import { parseDurationMs } from "../../../core/api/meta/duration.ts";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import { parseQuantity } from "../../../core/api/meta/quantity.ts";
import { type Amount, type EvictionSettings, isSignal, percent, type Signal, type Threshold, THRESHOLDS, WINDOWS_THRESHOLDS } from "../eviction/plan.ts";

type Texts = Readonly<Record<string, string>>;

export function evictionThresholds(configuration: Readonly<Record<string, unknown>>, { os, before }: { readonly os: "linux" | "windows"; readonly before: EvictionSettings }): EvictionSettings {
  const texts = (name: string): Texts | undefined => configuration[name] as Texts | undefined;
  const hard = texts("evictionHard");
  const defaults = os === "windows" ? WINDOWS_THRESHOLDS : THRESHOLDS;
  const merge = configuration["mergeDefaultEvictionSettings"] === true;
  const graces = new Map(entries(texts("evictionSoftGracePeriod") ?? {}).map(([signal, text]) => [signal, graceOf(text)]));
  const reclaims = new Map(entries(texts("evictionMinimumReclaim") ?? {}).map(([signal, text]) => [signal, reclaimOf(signal, text)]));
  const usual = before.thresholds === THRESHOLDS ? defaults : before.thresholds;
  const thresholds: Threshold[] = hard === undefined ? usual.filter(({ graceMs }) => graceMs === undefined) : [
    ...entries(hard).map(([signal, text]) => ({ signal, value: thresholdOf(signal, text) })),
    ...(merge ? defaults.filter(({ signal }) => hard[signal] === undefined) : []),
  ];
  for (const [signal, text] of entries(texts("evictionSoft") ?? {})) {
    const value = thresholdOf(signal, text), graceMs = graces.get(signal);
    if (isNone(value)) continue; // what is switched off needs no grace
    if (graceMs === undefined) throw new Error(`grace period must be specified for the soft eviction threshold ${signal}`);
    thresholds.push({ signal, value, graceMs });
  }
  const transition = configuration["evictionPressureTransitionPeriod"] as string | undefined;
  return {
    thresholds: thresholds.filter(({ value }) => !isNone(value)).map((threshold) => (reclaims.has(threshold.signal) ? { ...threshold, minReclaim: reclaims.get(threshold.signal) } : threshold)),
    transitionMs: transition === undefined || parseDurationMs(transition) === 0 ? before.transitionMs : parseDurationMs(transition),
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

function thresholdOf(signal: Signal, text: string): Amount {
  const amount = amountOf(text);
  if ("bytes" in amount && !(amount.bytes > 0)) throw new Error(`eviction threshold ${signal} must be positive: ${text}`);
  if ("fraction" in amount && !(amount.fraction >= 0)) throw new Error(`eviction percentage threshold ${signal} must be >= 0%: ${text}`);
  if ("fraction" in amount && amount.fraction > 1) throw new Error(`eviction percentage threshold ${signal} must be <= 100%: ${text}`);
  return amount;
}

function reclaimOf(signal: Signal, text: string): Amount {
  const amount = amountOf(text);
  if ("bytes" in amount && amount.bytes < 0) throw new Error(`negative eviction minimum reclaim specified for ${signal}`);
  if ("fraction" in amount && !(amount.fraction > 0)) throw new Error(`eviction percentage minimum reclaim ${signal} must be positive: ${text}`);
  return amount;
}

function graceOf(text: string): number {
  const graceMs = parseDurationMs(text);
  if (graceMs < 0) throw new Error(`invalid eviction grace period specified: ${text}, must be a positive value`);
  return graceMs;
}

function amountOf(text: string): Amount {
  if (text.endsWith("%")) return percent(numberOf(text.replace(/%+$/, "")));
  const quantity = parseQuantity(text);
  return { bytes: quantity.number(), ...(quantity.format === "BinarySI" ? {} : { isDecimal: true as const }) };
}

function numberOf(text: string): number {
  const number = Number(text);
  if (!/\d/.test(text) || Number.isNaN(number)) throw new Error(`strconv.ParseFloat: parsing ${goQuote(text)}: invalid syntax`);
  return number;
}
