/**
 * Pods keep their addresses when they are made anew: an address plug-in of our own (address-plugin.txt) around host-local, and the records it keeps.
 *
 * A node that reboots while its API server is away cannot tell anyone that its pods have moved, so they had better not.
 */
import { chmod, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileText } from "../../core/lifecycle/file-text.ts";
import { CNI_NETWORK } from "./cni-config.ts";
import { CNI_RESULTS, namesIn } from "./cni-records.ts";
import script from "./address-plugin.txt" with { type: "text" };

export const ADDRESS_PLUGIN = "coracle-ipam";

export interface StableAddresses {
  /** The plug-in's name, for the CNI configuration. */
  readonly plugin: string;
  /** Call it before the first pod is made, and now and then: it does nothing where nothing is missing. */
  install(): Promise<void>;
  /** Forgets the addresses of pods that are no more. */
  sweep(): Promise<void>;
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
    async install() {
      const path = join(pluginDir, ADDRESS_PLUGIN);
      const text = script.replaceAll(/=([A-Z]+)$/gm, (all, name: string) => (values[name] === undefined ? all : `='${values[name].replaceAll("'", "'\\''")}'`));
      if ((await fileText(path)) === text) return;
      await mkdir(pluginDir, { recursive: true });
      await writeFile(`${path}.new`, text);
      await chmod(`${path}.new`, 0o755);
      await rename(`${path}.new`, path);
    },
    async sweep() {
      for (const uid of await namesIn(recordDir)) if (!isPodHere(uid)) await rm(join(recordDir, uid), { force: true });
    },
  };
}
