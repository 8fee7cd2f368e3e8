/**
 * What the environment says of proxies (HTTP_PROXY, HTTPS_PROXY, NO_PROXY, and in small letters), which programs in Go take from their own. What is in the cluster is reached without
 * one, whether NO_PROXY has it or not: its pods, its Services and their names.
 */
import type { Settings } from "./config/flags.ts";

type Environment = Readonly<Record<string, string | undefined>>;
type Cluster = Pick<Settings, "clusterCidr" | "serviceCidr" | "clusterDomain">;

const NAMES = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"] as const;

/** Nothing where no proxy is named. */
export function proxyEnvironment(env: Environment, { clusterCidr, serviceCidr, clusterDomain }: Cluster): Readonly<Record<string, string>> {
  const [http, https, none] = NAMES.map((name) => env[name] || env[name.toLowerCase()] || "");
  if (!http && !https) return {};
  const inCluster = [...clusterCidr.split(","), ...serviceCidr.split(","), ".svc", `.${clusterDomain}`].map((text) => text.trim());
  return { ...(http && { HTTP_PROXY: http }), ...(https && { HTTPS_PROXY: https }), NO_PROXY: [...(none ? [none] : []), ...inCluster].join(",") };
}

const THIS_MACHINE = "localhost,127.0.0.0/8,::1";

/**
 * What is to be added to this process's own environment: the engine goes through a proxy to this machine itself, which no program in Go does, and of NO_PROXY and no_proxy it takes the second where
 * they take the first. Nothing where no proxy is named.
 */
export function straightToThisMachine(env: Environment): Readonly<Record<string, string>> {
  const [http, https, none = ""] = NAMES.map((name) => env[name] || env[name.toLowerCase()]);
  if (!http && !https) return {};
  const straight = none.endsWith(THIS_MACHINE) ? none : [...(none ? [none] : []), THIS_MACHINE].join(","); // a process that is started anew, or by another of ours, has it already
  return { NO_PROXY: straight, no_proxy: straight };
}

/** The container runtime's. It may have others than we: CONTAINERD_HTTPS_PROXY and so on, as k3s has them. */
export function runtimeEnvironment(env: Environment, cluster: Cluster): Readonly<Record<string, string>> {
  const own = NAMES.flatMap((name) => { const value = env[`CONTAINERD_${name}`]; return value === undefined ? [] : [[name, value] as const]; });
  return proxyEnvironment({ ...env, ...Object.fromEntries(own) }, cluster);
}
