/**
 * --kube-proxy-arg name=value: settings of the service proxy under upstream's names; config=FILE: those of a KubeProxyConfiguration.
 *
 * Names of upstream's that are not here: other-settings.ts.
 */
import { zpages } from "../core/api/codec/zpages.ts";
import { parseDurationMs } from "../core/api/meta/duration.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import { type Conntracking, CONNTRACKING } from "../node/network/host.ts";
import { proxyConfigz, type ProxyMode } from "../node/proxy/configz.ts";
import type { ProxyStatus } from "../node/proxy/health.ts";
import { ConfigError, fromFile } from "./config/config.ts";
import { argumentOf, checkOther, OTHER_PROXY_SETTINGS, OTHER_WINDOWS_PROXY_SETTINGS } from "./other-settings.ts";
import type { Settings } from "./config/flags.ts";
import { proxyArguments } from "./proxy-configuration.ts";
import { shownFlags } from "./shown-flags.ts";
import { versionInfo } from "./version.ts";

export interface Listening { readonly address: string; readonly port: number }

export interface ProxySettings {
  /** Of health checks, of metrics; undefined: nowhere. */
  readonly healthz: Listening | undefined;
  readonly status: Listening | undefined;
  readonly conntrack: Conntracking;
}

/** kube-proxy's. */
const HEALTH_PORT = 10_256;
const STATUS_PORT = 10_249;

const NAMES = ["healthz-bind-address", "metrics-bind-address", "conntrack-max-per-core", "conntrack-min", "conntrack-tcp-timeout-established", "conntrack-tcp-timeout-close-wait"] as const;

/** Which of them ask for what. */
const ASKED = [["conntrack-max-per-core", "max"], ["conntrack-min", "max"], ["conntrack-tcp-timeout-established", "established"], ["conntrack-tcp-timeout-close-wait", "closeWait"]] as const;

/** For /statusz. */
const PATHS = ["/configz", "/flagz", "/healthz", "/metrics", "/metrics/slis", "/proxyMode", "/statusz"];

/** What the proxy shows of itself besides its metrics. */
export function proxyPages(mode: ProxyMode, { settings, proxying, nodeName, clock }: { readonly settings: Settings; readonly proxying: ProxySettings; readonly nodeName: string; readonly clock: Clock }): Pick<ProxyStatus, "zpages" | "configz"> {
  return {
    zpages: zpages({ component: "kube-proxy", flags: shownFlags(settings), version: versionInfo(), paths: PATHS, clock }),
    configz: () => proxyConfigz({ ...proxying, mode, nodeName, clusterCidr: settings.clusterCidr, nodePortAddresses: settings.nodeportAddresses ?? [] }),
  };
}

/** `ipv6`: the node has no address of version 4. Of a name given twice, the last counts, and before what the file says that `config` names. Throws ConfigError. */
export function proxySettings(given: readonly string[], { ipv6, mode = "nftables" }: { readonly ipv6: boolean; readonly mode?: ProxyMode }): ProxySettings {
  const values = new Map<string, string>();
  const file = given.map(argumentOf).findLast((one) => one?.name === "config")?.value;
  const configured = file === undefined ? [] : fromFile("kube-proxy-arg config", file, proxyArguments);
  for (const text of [...configured, ...given]) {
    const { name, value } = argumentOf(text) ?? { name: "", value: "" };
    if (name === "config") continue;
    if (NAMES.includes(name as (typeof NAMES)[number])) values.set(name, value);
    else checkOther("kube-proxy-arg", text, { others: mode === "nftables" ? OTHER_PROXY_SETTINGS : OTHER_WINDOWS_PROXY_SETTINGS, known: ["config", ...NAMES] });
  }
  function read<T>(name: (typeof NAMES)[number], standard: T, wanted: string, parse: (text: string) => T | undefined): T {
    const text = values.get(name);
    if (text === undefined) return standard;
    const value = parse(text);
    if (value === undefined) throw new ConfigError(`--kube-proxy-arg ${name} must be ${wanted}, not ${JSON.stringify(text)}`);
    return value;
  }
  const count = (name: (typeof NAMES)[number], standard: number): number => read(name, standard, "a whole number", (text) => (/^\d{1,9}$/.test(text) ? Number(text) : undefined));
  const seconds = (name: (typeof NAMES)[number], standard: number): number => read(name, standard, "a duration such as 24h", secondsOf);
  const listening = (name: (typeof NAMES)[number], standard: Listening): Listening | undefined =>
    read<Listening | "">(name, standard, "an address, with or without a port", (text) => (text === "" ? "" : listeningOf(text, standard.port))) || undefined;
  const asked = new Set(ASKED.flatMap(([name, what]) => (values.has(name) ? [what] : [])));
  return {
    healthz: listening("healthz-bind-address", { address: ipv6 ? "::" : "0.0.0.0", port: HEALTH_PORT }),
    status: listening("metrics-bind-address", { address: "127.0.0.1", port: STATUS_PORT }),
    conntrack: {
      perCpu: count("conntrack-max-per-core", CONNTRACKING.perCpu), min: count("conntrack-min", CONNTRACKING.min),
      establishedSeconds: seconds("conntrack-tcp-timeout-established", CONNTRACKING.establishedSeconds), closeWaitSeconds: seconds("conntrack-tcp-timeout-close-wait", CONNTRACKING.closeWaitSeconds),
      ...(asked.size > 0 && { asked }),
    },
  };
}

function secondsOf(text: string): number | undefined {
  try {
    const ms = parseDurationMs(text);
    return ms < 0 ? undefined : Math.floor(ms / 1000);
  } catch {
    return undefined; // the caller says what is wanted instead
  }
}

/** 0.0.0.0:10249, 0.0.0.0, [::]:10249, :: */
function listeningOf(text: string, standardPort: number): Listening | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|(\d+\.\d+\.\d+\.\d+)|([0-9a-f:]*::[0-9a-f:]*))(?::(\d{1,5}))?$/i.exec(text);
  const port = Number(match?.[4] ?? standardPort);
  return match && port > 0 && port < 65_536 ? { address: (match[1] ?? match[2] ?? match[3])!, port } : undefined;
}
