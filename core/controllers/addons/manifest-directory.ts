/** Manifests as they lie in a directory of the server's and in those below it: *.yaml, *.yml and *.json. Files and directories whose name begins with a dot, or that have a neighbour NAME.skip, are passed over. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { ifThere } from "../../lifecycle/if-there.ts";

export interface ManifestFiles {
  /** All of them, by their paths below the directory, each with what changes when the file does. */
  stamps(): Promise<ReadonlyMap<string, string>>;
  /** Undefined: it is gone. */
  read(path: string): Promise<string | undefined>;
}

/** A directory that is not there is one without files. */
export function manifestDirectory(directory: string): ManifestFiles {
  return {
    async stamps() {
      const paths = (await ifThere(readdir(directory, { recursive: true }))) ?? [];
      const skipped = paths.flatMap((path) => (path.endsWith(".skip") ? [path.slice(0, -".skip".length)] : []));
      const passedOver = (path: string): boolean => /(^|\/)\./.test(path) || skipped.some((one) => path === one || path.startsWith(`${one}/`));
      const chosen = paths.filter((path) => /[^/]\.(ya?ml|json)$/.test(path) && !passedOver(path));
      const stamps = await Promise.all(chosen.toSorted().map(async (path) => [path, await ifThere(stat(join(directory, path)))] as const));
      return new Map(stamps.flatMap(([path, found]) => (found?.isFile() ? [[path, `${found.ino} ${found.size} ${found.mtimeMs}`]] : [])));
    },
    read: (path) => ifThere(readFile(join(directory, path), "utf8")),
  };
}
