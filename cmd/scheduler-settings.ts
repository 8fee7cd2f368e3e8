/** What --scheduler-config, or --kube-scheduler-arg config=FILE, makes of the scheduler. Files that the configuration names are read here. */
import type { ExtenderConfig } from "../core/scheduler/config/configuration.ts";
import { WITHOUT_FILE } from "../core/scheduler/config/configz.ts";
import { schedulerSettings } from "../core/scheduler/config/profiles.ts";
import { Extender, type TlsFiles } from "../core/scheduler/extender.ts";
import { defaultProfile, type Profile } from "../core/scheduler/plugins.ts";
import type { BackoffOptions } from "../core/lifecycle/backoff.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import { type Listening, LISTENING_NAMES, listeningWith, SCHEDULER_LISTENING } from "./component-listening.ts";
import { fromFile, requiredText } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { argumentOf, checkOther, OTHER_SCHEDULER_SETTINGS } from "./other-settings.ts";

export interface SchedulerSetup {
  readonly profiles: readonly Profile[];
  readonly extenders: readonly Extender[];
  readonly backoff?: BackoffOptions;
  readonly listening: Listening;
  /** The configuration file; undefined: none. */
  readonly text?: string | undefined;
}

/** Throws ConfigError with what is wrong with the file. `gates`: features that were switched on. */
export function schedulerSetup({ schedulerConfig, kubeSchedulerArg }: Pick<Settings, "schedulerConfig" | "kubeSchedulerArg">, clock: Clock, gates: ReadonlySet<string> = new Set()): SchedulerSetup {
  let file = schedulerConfig === undefined ? undefined : { setting: "scheduler-config", path: schedulerConfig };
  let listening = SCHEDULER_LISTENING;
  for (const text of kubeSchedulerArg) {
    const { name, value } = argumentOf(text) ?? { name: "", value: "" };
    const told = listeningWith(listening, "kube-scheduler-arg", { name, value });
    if (told !== undefined) listening = told;
    else if (name === "config") file ??= { setting: "kube-scheduler-arg config", path: value };
    else checkOther("kube-scheduler-arg", text, { others: OTHER_SCHEDULER_SETTINGS, known: ["config=FILE, a KubeSchedulerConfiguration", ...LISTENING_NAMES] });
  }
  if (file === undefined) return { profiles: gates.has("StorageCapacityScoring") ? schedulerSettings(WITHOUT_FILE, gates).profiles : [defaultProfile(gates)], extenders: [], listening };
  return fromFile(file.setting, file.path, (text) => {
    const { profiles, extenders, backoff } = schedulerSettings(text, gates);
    return { profiles, backoff, listening, text, extenders: extenders.map((config) => new Extender(config, { clock, tls: filesOf(config) })) };
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
