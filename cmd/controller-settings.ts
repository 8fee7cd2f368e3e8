/**
 * --kube-controller-manager-arg name=value: settings of the controllers under upstream's names.
 *
 * A name that is not here is refused: a setting that does nothing would be believed to do something.
 */
import { parseDurationMs } from "../core/api/meta/duration.ts";
import type { AllControllersDeps } from "../core/controllers/all.ts";
import { ConfigError } from "./config/config.ts";

export type ControllerSettings = Pick<AllControllersDeps, "nodeGraceMs" | "terminatedPodsMax" | "forceDetach">;

/** What each makes of its value; undefined: not a value of its kind. */
const SETTINGS: Readonly<Record<string, { readonly wanted: string; readonly read: (text: string) => ControllerSettings | undefined }>> = {
  "node-monitor-grace-period": { wanted: "a duration such as 50s", read: (text) => { const nodeGraceMs = durationOf(text); return nodeGraceMs === undefined ? undefined : { nodeGraceMs }; } },
  "terminated-pod-gc-threshold": { wanted: "a whole number", read: (text) => (/^-?\d{1,9}$/.test(text) ? { terminatedPodsMax: Number(text) } : undefined) },
  "disable-force-detach-on-timeout": { wanted: "true or false", read: (text) => (text === "true" || text === "false" ? { forceDetach: text === "false" } : undefined) },
};

/** Of a name given twice, the last counts. Throws ConfigError. */
export function controllerSettings(given: readonly string[]): ControllerSettings {
  let settings: ControllerSettings = {};
  for (const text of given) {
    const [, name = "", value = "true"] = /^(?:--)?([a-z0-9-]+)(?:=([\s\S]*))?$/.exec(text) ?? [];
    const setting = Object.hasOwn(SETTINGS, name) ? SETTINGS[name] : undefined;
    if (setting === undefined) throw new ConfigError(`--kube-controller-manager-arg ${text}: not a setting we have; there are ${Object.keys(SETTINGS).join(", ")}`);
    const found = setting.read(value);
    if (found === undefined) throw new ConfigError(`--kube-controller-manager-arg ${name} must be ${setting.wanted}, not ${JSON.stringify(value)}`);
    settings = { ...settings, ...found };
  }
  return settings;
}

/** Undefined: none, or not more than nothing. */
function durationOf(text: string): number | undefined {
  try {
    const ms = parseDurationMs(text);
    return ms > 0 ? ms : undefined;
  } catch {
    return undefined; // the caller says what is wanted instead
  }
}
