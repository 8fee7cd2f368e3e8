/** The settings all nodes of a cluster share: given to the server, written into the cluster (core/server/join-objects.ts), read by agents. */
import { camelCase, type FLAGS, type Settings } from "./config/flags.ts";
import { canonicalText } from "./config/ranges.ts";

const SHARED = ["cluster-cidr", "service-cidr", "cluster-dns", "cluster-domain", "overlay", "disable"] as const satisfies readonly (typeof FLAGS)[number]["name"][];
const CRITICAL = ["cluster-cidr", "service-cidr", "cluster-dns", "cluster-domain"] as const satisfies readonly (typeof SHARED)[number][];

export function sharedSettings(settings: Settings): Record<string, string> {
  return Object.fromEntries(SHARED.map((name) => [name, String(settings[camelCase(name) as keyof Settings] ?? "")]));
}

/** What follows when one of them is changed in a cluster that runs, and what to do. What changes for the Services' range is told where they are given out. */
const AFTER_CHANGE: Readonly<Partial<Record<string, string>>> = {
  "cluster-cidr": "nodes keep the addresses of pods that they have, which are taken for some outside the cluster now: give all servers the range of before; or drain each node, delete it, and start it anew",
  "cluster-dns": "agents tell pods the address of before until they are started anew",
  "cluster-domain": "what runs goes on with names and tokens of the domain of before, which nobody knows any more: start agents anew, then all pods; or give all servers the domain of before",
  overlay: "nodes that have the one reach no pods on those that have the other: start all agents anew, and give all servers the same",
  disable: "agents go on with what they have until they are started anew; give all servers the same",
};

/** However it was written: an older server has told the cluster what its owner wrote, and what is disabled is in no order. */
export function isSameSetting({ name, before, now }: { readonly name: string; readonly before: string; readonly now: string }): boolean {
  const parts = (text: string): readonly string[] => (name === "disable" ? text.split(",").toSorted() : [canonicalText(text)]);
  return parts(before).join() === parts(now).join();
}

export function afterChange(name: string): string | undefined { return AFTER_CHANGE[name]; }

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
