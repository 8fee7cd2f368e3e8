/** The settings all nodes of a cluster share: given to the server, written into the cluster (core/server/join-objects.ts), read by agents. */
import { camelCase, type FLAGS, type Settings } from "./config/flags.ts";

const SHARED = ["cluster-cidr", "service-cidr", "cluster-dns", "cluster-domain", "overlay", "disable"] as const satisfies readonly (typeof FLAGS)[number]["name"][];
const CRITICAL = ["cluster-cidr", "service-cidr", "cluster-dns", "cluster-domain"] as const satisfies readonly (typeof SHARED)[number][];

export function sharedSettings(settings: Settings): Record<string, string> {
  return Object.fromEntries(SHARED.map((name) => [name, String(settings[camelCase(name) as keyof Settings] ?? "")]));
}

/** Those of them that servers of one cluster must agree on. */
export function criticalSettings(settings: Settings): Record<string, string> {
  return Object.fromEntries(CRITICAL.map((name) => [name, String(settings[camelCase(name) as keyof Settings] ?? "")]));
}

/** An agent's settings with those of its cluster. One that an older server does not tell keeps its default. */
export function withShared(settings: Settings, shared: Readonly<Record<string, string>>): Settings {
  const values = SHARED.flatMap((name): [string, unknown][] => {
    const text = shared[name];
    if (text === undefined) return [];
    return [[camelCase(name), name === "disable" ? text.split(",").filter((part) => part !== "") : text]];
  });
  return Object.freeze({ ...settings, ...Object.fromEntries(values) });
}
