/** Manifests as they lie in a directory of the server's: *.yaml, *.yml and *.json, not in directories below it. Those whose name begins with a dot, or that have a neighbour NAME.skip, are passed over. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";

export interface ManifestFiles {
  /** The names of all of them, each with what changes when the file does. */
  stamps(): Promise<ReadonlyMap<string, string>>;
  /** Undefined: it is gone. */
  read(name: string): Promise<string | undefined>;
}

/** A directory that is not there is one without files. */
export function manifestDirectory(directory: string): ManifestFiles {
  return {
    async stamps() {
      const names = (await unlessGone(readdir(directory))) ?? [];
      const chosen = names.filter((name) => /^[^.].*\.(ya?ml|json)$/.test(name) && !names.includes(`${name}.skip`));
      const stamps = await Promise.all(chosen.toSorted().map(async (name) => [name, await unlessGone(stat(join(directory, name)))] as const));
      return new Map(stamps.flatMap(([name, found]) => (found?.isFile() ? [[name, `${found.ino} ${found.size} ${found.mtimeMs}`]] : [])));
    },
    read: (name) => unlessGone(readFile(join(directory, name), "utf8")),
  };
}

async function unlessGone<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
