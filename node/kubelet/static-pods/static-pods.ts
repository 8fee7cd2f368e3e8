/**
 * Pods from a directory on this machine, or from one file. They run whether or not there is an API server; a file that goes takes its pod with it, a file that
 * changes replaces it. While what is written cannot be used, the pod of before runs on until the directory is looked through again.
 *
 * Source: kubernetes v1.36 pkg/kubelet/config/file.go
 */
import { type FSWatcher, watch } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { errorText } from "../../../core/api/meta/error-text.ts";
import { keyOf, type ObjectKey } from "../../../core/api/meta/object-meta.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import { type CompletePod, podFromManifest } from "./manifest.ts";

interface Deps {
  /** Or the one manifest. */
  readonly directory: string;
  readonly nodeName: string;
  readonly complete: CompletePod;
  /** Where the kernel does not tell of changes (network file systems) they are found this late. */
  readonly scanMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  /** All of them, once it is known which there are, and whenever something changed. */
  readonly onChange: (pods: readonly Pod[]) => void;
}

/** What stands in a file, or why that cannot be read. */
type Content = { readonly text: string; readonly problem?: undefined } | { readonly text?: undefined; readonly problem: string };

/** A name came or went; what stands there was written; a file was made and then written, which another that is put in its place is not. */
type Happened = "moved" | "written" | "made";

/** What is larger is no manifest: it is not read into memory. */
const MANIFEST_BYTES_MAX = 10 * 1024 ** 2; // kubernetes v1.36 pkg/kubelet/config/common.go maxConfigLength
/** Editors write a file in several steps. */
const SETTLE_MS = 100;

export function staticPods({ directory, nodeName, complete, scanMs, clock, log, events, onChange }: Deps): Runnable {
  const known = new Map<string, Content & { readonly pod: Pod | undefined }>(); // by file name
  let isTold = false; // that there is none is worth telling, too

  /** `seen`: what happened since the last scan; undefined: everything is looked through. */
  async function scan(seen?: ReadonlyMap<string, Happened>): Promise<void> {
    const names = (await namesIn(directory)).filter((name) => !name.startsWith(".")).toSorted();
    const returned = names.filter((name) => known.get(name)?.pod && seen?.get(name) === "made"); // it went, and came again: so does its pod
    for (const name of returned) known.delete(name);
    if (returned.length > 0) onChange(withoutNamesakes(names));
    let changed = false;
    const there = new Set(names);
    for (const name of known.keys()) if (!there.has(name)) changed = known.delete(name);
    for (const name of names) {
      const content = await contentOf(join(directory, name));
      const before = known.get(name);
      if (before && before.text === content.text && before.problem === content.problem) continue;
      if (content.problem !== undefined) log.error("static pod's manifest cannot be read", { file: join(directory, name), problem: content.problem });
      const pod = content.text === undefined ? undefined : parsed(name, content.text);
      if (!pod && before?.pod && seen) continue; // it may be half written
      known.set(name, { ...content, pod });
      changed = true;
    }
    if (changed || !isTold) onChange(withoutNamesakes(names));
    isTold = true;
  }

  /** Of pods of one name, that of the first file. */
  function withoutNamesakes(names: readonly string[]): Pod[] {
    const taken = new Map<ObjectKey, { readonly file: string; readonly pod: Pod }>();
    for (const file of names) {
      const pod = known.get(file)?.pod;
      if (!pod) continue;
      const other = taken.get(keyOf(pod));
      if (!other) {
        taken.set(keyOf(pod), { file, pod });
        continue;
      }
      log.error("static pod is not run: the manifest of another has its name", { file: join(directory, file), other: join(directory, other.file), pod: keyOf(pod) });
      events.event(pod, "Warning", "FailedValidation", `Error validating pod ${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid}) from file due to duplicate pod name "${pod.metadata.name}", ignoring`);
    }
    return [...taken.values()].map(({ pod }) => pod);
  }

  function parsed(name: string, text: string): Pod | undefined {
    try {
      return podFromManifest(text, { nodeName, path: join(directory, name), nowMs: clock.nowMs(), complete });
    } catch (error) {
      log.error("static pod's manifest cannot be used", { file: join(directory, name), problem: errorText(error) });
      return undefined;
    }
  }

  return {
    name: "static-pods",
    async run(signal, ready) {
      let woken = new AbortController();
      let watcher: FSWatcher | undefined;
      let happened = new Map<string, Happened>();
      let seen: ReadonlyMap<string, Happened> | undefined;
      try {
        while (!signal.aborted) {
          woken = new AbortController();
          happened = new Map();
          watcher ??= watchIfThere(directory, (event, name) => {
            if (name !== null) happened.set(name, event === "rename" ? "moved" : (happened.get(name) ?? "written") === "written" ? "written" : "made");
            woken.abort();
          });
          await scan(seen).catch((error: unknown) => log.warn("static pods not read, next try soon", { directory, error }));
          ready();
          await clock.sleep(scanMs, AbortSignal.any([signal, woken.signal]));
          if (woken.signal.aborted) await clock.sleep(SETTLE_MS, signal);
          seen = woken.signal.aborted ? happened : undefined;
        }
      } finally {
        watcher?.close();
      }
    },
  };
}

function watchIfThere(directory: string, onChange: (event: string, name: string | null) => void): FSWatcher | undefined {
  try {
    return watch(directory, onChange).on("error", () => undefined); // it still is scanned now and then
  } catch {
    return undefined; // not there yet, or not watchable: likewise
  }
}

/** One that cannot be read is no reason to leave the others: a link to nowhere, a pipe that nobody writes to. */
async function contentOf(path: string): Promise<Content> {
  try {
    const found = await stat(path);
    if (!found.isFile()) return { problem: "it is not a regular file" };
    return found.size < MANIFEST_BYTES_MAX ? { text: await readFile(path, "utf8") } : { problem: "the read limit is reached" };
  } catch (error) {
    return { problem: (error as NodeJS.ErrnoException).code ?? String(error) };
  }
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory, { withFileTypes: true })).filter((entry) => !entry.isDirectory()).map(({ name }) => name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return [""]; // a manifest itself
    throw error;
  }
}
