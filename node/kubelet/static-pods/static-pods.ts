/**
 * Pods from a directory on this machine. They run whether or not there is an API server; a file that goes takes its pod with it, a file that
 * changes replaces it.
 *
 * Source: kubernetes v1.36 pkg/kubelet/config/file.go
 */
import { type FSWatcher, watch } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import { type CompletePod, podFromManifest } from "./manifest.ts";

interface Deps {
  readonly directory: string;
  readonly nodeName: string;
  readonly complete: CompletePod;
  /** Where the kernel does not tell of changes (network file systems) they are found this late. */
  readonly scanMs: number;
  readonly clock: Clock;
  readonly log: Log;
  /** All of them, whenever something changed. */
  readonly onChange: (pods: readonly Pod[]) => void;
}

/** Editors write a file in several steps. */
const SETTLE_MS = 100;

export function staticPods({ directory, nodeName, complete, scanMs, clock, log, onChange }: Deps): Runnable {
  const known = new Map<string, { readonly text: string; readonly pod: Pod | undefined }>(); // by file name

  async function scan(): Promise<void> {
    const names = (await namesIn(directory)).filter((name) => !name.startsWith(".")).toSorted();
    let changed = [...known.keys()].some((name) => !names.includes(name));
    for (const name of known.keys()) if (!names.includes(name)) known.delete(name);
    for (const name of names) {
      const text = await readFile(join(directory, name), "utf8");
      if (known.get(name)?.text === text) continue;
      known.set(name, { text, pod: parsed(name, text) });
      changed = true;
    }
    if (changed) onChange([...known.values()].flatMap(({ pod }) => (pod ? [pod] : [])));
  }

  function parsed(name: string, text: string): Pod | undefined {
    try {
      return podFromManifest(text, { nodeName, path: join(directory, name), nowMs: clock.nowMs(), complete });
    } catch (error) {
      log.error("static pod's manifest cannot be used", { file: join(directory, name), error });
      return undefined;
    }
  }

  return {
    name: "static-pods",
    async run(signal, ready) {
      let woken = new AbortController();
      let watcher: FSWatcher | undefined;
      try {
        while (!signal.aborted) {
          woken = new AbortController();
          watcher ??= watchIfThere(directory, () => woken.abort());
          await scan().catch((error: unknown) => log.warn("static pods not read, next try soon", { directory, error }));
          ready();
          await clock.sleep(scanMs, AbortSignal.any([signal, woken.signal]));
          if (woken.signal.aborted) await clock.sleep(SETTLE_MS, signal);
        }
      } finally {
        watcher?.close();
      }
    },
  };
}

function watchIfThere(directory: string, onChange: () => void): FSWatcher | undefined {
  try {
    return watch(directory, onChange).on("error", () => undefined); // it still is scanned now and then
  } catch {
    return undefined; // not there yet, or not watchable: likewise
  }
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory, { withFileTypes: true })).filter((entry) => !entry.isDirectory()).map(({ name }) => name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
