/**
 * Pods keep their addresses when they are made anew: an address plug-in of our own (address-plugin.txt) around host-local, and the records it keeps.
 *
 * A node that reboots while its API server is away cannot tell anyone that its pods have moved, so they had better not.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CNI_NETWORK } from "./cni-config.ts";
import { CNI_RESULTS } from "./cni-records.ts";
import script from "./address-plugin.txt" with { type: "text" };

export const ADDRESS_PLUGIN = "coracle-ipam";

export interface StableAddresses {
  /** The plug-in's name, for the CNI configuration. */
  readonly plugin: string;
  /** Call it before the first pod is made, and now and then: it does nothing where nothing is missing. */
  install(): void;
  /** Forgets the addresses of pods that are no more. */
  sweep(): void;
}

export interface StableAddressesOptions {
  /** One of those where containerd looks for plug-ins. */
  readonly pluginDir: string;
  readonly recordDir: string;
  /** Where host-local keeps which addresses are held. */
  readonly ipamDir: string;
  /** The pod with this uid has, or had a moment ago, anything on this node. */
  readonly isPodHere: (uid: string) => boolean;
  readonly resultsDir?: string | undefined;
}

export function stableAddresses({ pluginDir, recordDir, ipamDir, isPodHere, resultsDir = CNI_RESULTS }: StableAddressesOptions): StableAddresses {
  const values: Readonly<Record<string, string>> = { RECORDS: recordDir, HELD: join(ipamDir, CNI_NETWORK), RESULTS: join(resultsDir, CNI_NETWORK) };
  return {
    plugin: ADDRESS_PLUGIN,
    install() {
      const path = join(pluginDir, ADDRESS_PLUGIN);
      const text = script.replaceAll(/=([A-Z]+)$/gm, (all, name: string) => (values[name] === undefined ? all : `='${values[name].replaceAll("'", "'\\''")}'`));
      if (existsSync(path) && readFileSync(path, "utf8") === text) return;
      mkdirSync(pluginDir, { recursive: true });
      writeFileSync(`${path}.new`, text);
      chmodSync(`${path}.new`, 0o755);
      renameSync(`${path}.new`, path);
    },
    sweep() {
      if (!existsSync(recordDir)) return;
      for (const uid of readdirSync(recordDir)) if (!isPodHere(uid)) rmSync(join(recordDir, uid), { force: true });
    },
  };
}
