/** What --scheduler-config, or --kube-scheduler-arg config=FILE, makes of the scheduler. Files that the configuration names are read here. */
import type { ExtenderConfig } from "../core/scheduler/config/configuration.ts";
import { schedulerSettings } from "../core/scheduler/config/profiles.ts";
import { Extender, type TlsFiles } from "../core/scheduler/extender.ts";
import { DEFAULT_PROFILE, type Profile } from "../core/scheduler/plugins.ts";
import type { BackoffOptions } from "../core/lifecycle/backoff.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import { fromFile, requiredText } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { argumentOf, checkOther, OTHER_SCHEDULER_SETTINGS } from "./other-settings.ts";

export interface SchedulerSetup {
  readonly profiles: readonly Profile[];
  readonly extenders: readonly Extender[];
  readonly backoff?: BackoffOptions;
}

/** Throws ConfigError with what is wrong with the file. */
export function schedulerSetup({ schedulerConfig, kubeSchedulerArg }: Pick<Settings, "schedulerConfig" | "kubeSchedulerArg">, clock: Clock): SchedulerSetup {
  let file = schedulerConfig === undefined ? undefined : { setting: "scheduler-config", path: schedulerConfig };
  for (const text of kubeSchedulerArg) {
    const { name, value } = argumentOf(text) ?? { name: "", value: "" };
    if (name === "config") file ??= { setting: "kube-scheduler-arg config", path: value };
    else checkOther("kube-scheduler-arg", text, { others: OTHER_SCHEDULER_SETTINGS, known: ["config=FILE, a KubeSchedulerConfiguration"] });
  }
  if (file === undefined) return { profiles: [DEFAULT_PROFILE], extenders: [] };
  return fromFile(file.setting, file.path, (text) => {
    const { profiles, extenders, backoff } = schedulerSettings(text);
    return { profiles, backoff, extenders: extenders.map((config) => new Extender(config, { clock, tls: filesOf(config) })) };
  });
}

function filesOf({ tlsConfig }: ExtenderConfig): TlsFiles | undefined {
  if (!tlsConfig) return undefined;
  const pem = (data: string | undefined, file: string | undefined): string | undefined => {
    if (data) return Buffer.from(data, "base64").toString();
    return file ? requiredText(file) : undefined;
  };
  const { caData, caFile, certData, certFile, keyData, keyFile } = tlsConfig;
  return { ca: pem(caData, caFile), cert: pem(certData, certFile), key: pem(keyData, keyFile) };
}
