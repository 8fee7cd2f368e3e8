/**
 * From what the metrics call for to what is done: not up and down with every wind, not faster than allowed, within minReplicas and maxReplicas.
 *
 * Source: kubernetes v1.36 pkg/controller/podautoscaler/horizontal.go (normalizeDesiredReplicas…)
 */
import type { HPAScalingRules } from "../../api/gen/autoscaling.v2.ts";
import { AUTOSCALING } from "./settings.ts";

/** What an autoscaler has recommended and done lately, and when by uptime: a clock that is set back must not make it last. Kept in memory: after a restart it begins anew, from the replicas there are. */
export interface History {
  readonly recommendations: readonly { readonly replicas: number; readonly atMs: number }[];
  readonly ups: readonly ScaleEvent[];
  readonly downs: readonly ScaleEvent[];
}
interface ScaleEvent { readonly change: number; readonly atMs: number }

export interface Said { readonly status: "True" | "False"; readonly reason: string; readonly message: string }
export interface Normalized { readonly replicas: number; readonly history: History; readonly able: Said; readonly limited: Said }

interface Wanted {
  readonly current: number;
  readonly desired: number;
  readonly min: number;
  readonly max: number;
  /** Absent: the rules of before there were behaviors. */
  readonly behavior?: { readonly scaleUp?: HPAScalingRules | undefined; readonly scaleDown?: HPAScalingRules | undefined } | undefined;
  readonly history: History;
  readonly downscaleSeconds?: number | undefined;
  readonly uptimeMs: number;
}

const UP_DEFAULT: HPAScalingRules = { stabilizationWindowSeconds: 0, selectPolicy: "Max", policies: [{ type: "Pods", value: 4, periodSeconds: 15 }, { type: "Percent", value: 100, periodSeconds: 15 }] };
const DOWN_DEFAULT: HPAScalingRules = { selectPolicy: "Max", policies: [{ type: "Percent", value: 100, periodSeconds: 15 }] };
const REPLICAS_MAX = 2 ** 31 - 1;

export function newHistory(replicas: number, uptimeMs: number): History { return { recommendations: [{ replicas, atMs: uptimeMs }], ups: [], downs: [] }; }

export function normalize(wanted: Wanted): Normalized {
  const up = { ...UP_DEFAULT, ...wanted.behavior?.scaleUp };
  const down = { ...DOWN_DEFAULT, ...wanted.behavior?.scaleDown };
  const downSeconds = down.stabilizationWindowSeconds ?? wanted.downscaleSeconds ?? AUTOSCALING.downscaleSeconds;
  const { replicas: stable, history } = wanted.behavior ? stabilize(wanted, { upSeconds: up.stabilizationWindowSeconds ?? 0, downSeconds }) : stabilizeDown(wanted);
  const { replicas, reason, message } = wanted.behavior ? limitByRules({ ...wanted, desired: stable }, up, down) : limit({ ...wanted, desired: stable });
  return { replicas, history, able: stable === wanted.desired ? READY : heldBack(wanted), limited: { status: replicas === stable ? "False" : "True", reason, message } };
}

const READY: Said = { status: "True", reason: "ReadyForNewScale", message: "recommended size matches current size" };

function heldBack({ behavior, desired, current }: Wanted): Said {
  return behavior && desired >= current
    ? { status: "True", reason: "ScaleUpStabilized", message: "recent recommendations were lower than current one, applying the lowest recent recommendation" }
    : { status: "True", reason: "ScaleDownStabilized", message: "recent recommendations were higher than current one, applying the highest recent recommendation" };
}

interface Stable { readonly replicas: number; readonly history: History }

/** The highest of the window. */
function stabilizeDown({ desired, history, downscaleSeconds = AUTOSCALING.downscaleSeconds, uptimeMs }: Wanted): Stable {
  const recent = history.recommendations.filter(({ atMs }) => atMs >= uptimeMs - downscaleSeconds * 1000);
  return { replicas: Math.max(desired, ...recent.map(({ replicas }) => replicas)), history: { ...history, recommendations: [...recent, { replicas: desired, atMs: uptimeMs }] } };
}

/** No higher than the lowest of one window, no lower than the highest of the other. */
function stabilize({ current, desired, history, uptimeMs }: Wanted, { upSeconds, downSeconds }: { readonly upSeconds: number; readonly downSeconds: number }): Stable {
  const within = (seconds: number): number[] => history.recommendations.filter(({ atMs }) => atMs > uptimeMs - seconds * 1000).map(({ replicas }) => replicas);
  const lowest = Math.min(desired, ...within(upSeconds));
  const highest = Math.max(desired, ...within(downSeconds));
  const recent = history.recommendations.filter(({ atMs }) => atMs >= uptimeMs - Math.max(upSeconds, downSeconds) * 1000);
  return { replicas: Math.min(Math.max(current, lowest), highest), history: { ...history, recommendations: [...recent, { replicas: desired, atMs: uptimeMs }] } };
}

interface Limited { readonly replicas: number; readonly reason: string; readonly message: string }

const TOO_MANY = { reason: "TooManyReplicas", message: "the desired replica count is more than the maximum replica count" };
const TOO_FEW = { reason: "TooFewReplicas", message: "the desired replica count is less than the minimum replica count" };
const TOO_FAST_UP = { reason: "ScaleUpLimit", message: "the desired replica count is increasing faster than the maximum scale rate" };
const TOO_FAST_DOWN = { reason: "ScaleDownLimit", message: "the desired replica count is decreasing faster than the maximum scale rate" };
const WITHIN = { reason: "DesiredWithinRange", message: "the desired count is within the acceptable range" };

/** At most double, or four. */
function limit({ current, desired, min, max }: Wanted): Limited {
  const fastest = Math.max(2 * current, 4);
  if (desired < min) return { replicas: min, ...TOO_FEW };
  if (desired > Math.min(max, fastest)) return max > fastest ? { replicas: fastest, ...TOO_FAST_UP } : { replicas: max, ...TOO_MANY };
  return { replicas: desired, ...WITHIN };
}

function limitByRules({ current, desired, min, max, history, uptimeMs }: Wanted, up: HPAScalingRules, down: HPAScalingRules): Limited {
  if (desired > current) {
    const fastest = Math.max(current, rateLimit(up, { current, history, uptimeMs, direction: 1 }));
    if (desired > Math.min(max, fastest)) return max > fastest ? { replicas: fastest, ...TOO_FAST_UP } : { replicas: max, ...TOO_MANY };
  } else if (desired < current) {
    const fastest = Math.min(current, rateLimit(down, { current, history, uptimeMs, direction: -1 }));
    if (desired < Math.max(min, fastest)) return min < fastest ? { replicas: fastest, ...TOO_FAST_DOWN } : { replicas: min, ...TOO_FEW };
  }
  return { replicas: desired, ...WITHIN };
}

/** How far the policies let it go from where it stood when their periods began. */
function rateLimit({ selectPolicy, policies = [] }: HPAScalingRules, { current, history, uptimeMs, direction }: { readonly current: number; readonly history: History; readonly uptimeMs: number; readonly direction: 1 | -1 }): number {
  if (selectPolicy === "Disabled") return current;
  const limits = policies.map(({ type, value, periodSeconds }) => {
    const changed = (events: readonly ScaleEvent[]): number => events.reduce((sum, { change, atMs }) => sum + (atMs > uptimeMs - periodSeconds * 1000 ? change : 0), 0);
    const start = current - changed(history.ups) + changed(history.downs);
    if (type === "Pods") return start + direction * value;
    return direction > 0 ? Math.ceil(start * (1 + value / 100)) : Math.trunc(start * (1 - value / 100));
  });
  const furthest = (selectPolicy === "Min") === (direction < 0) ? Math.max : Math.min; // "Min" is the least change
  return Math.max(-REPLICAS_MAX, Math.min(REPLICAS_MAX, furthest(...limits)));
}

/** Remembers a change, as far back as any policy looks. */
export function withScaleEvent(history: History, { from, to, behavior, uptimeMs }: { readonly from: number; readonly to: number; readonly behavior: Wanted["behavior"]; readonly uptimeMs: number }): History {
  if (!behavior || from === to) return history;
  const policies = (to > from ? { ...UP_DEFAULT, ...behavior.scaleUp } : { ...DOWN_DEFAULT, ...behavior.scaleDown }).policies ?? [];
  const longestMs = Math.max(0, ...policies.map(({ periodSeconds }) => periodSeconds)) * 1000;
  const recent = (events: readonly ScaleEvent[]): ScaleEvent[] => [...events.filter(({ atMs }) => atMs >= uptimeMs - longestMs), { change: Math.abs(to - from), atMs: uptimeMs }];
  return to > from ? { ...history, ups: recent(history.ups) } : { ...history, downs: recent(history.downs) };
}
