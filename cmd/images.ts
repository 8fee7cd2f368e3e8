/** `coracle images import FILE…` and `coracle images list`. */
import { runtimePaths } from "../node/runtime/paths.ts";
import { importImages, listImages } from "../node/runtime/images.ts";
import { ConfigError } from "./config/config.ts";
import { machineSettings } from "./tools.ts";

const USAGE = "Usage: coracle images import FILE…    archives of images (OCI layout or docker save; .tar, .tar.gz, .tar.zst)\n       coracle images list";

export async function images(argv: readonly string[]): Promise<number> {
  const [action, ...rest] = argv;
  const where = dataDirOf(rest);
  const paths = runtimePaths(where.dataDir);
  if (action === "list") {
    for (const { name, digest, pinned } of await listImages(paths)) console.log(`${name}\t${digest}${pinned ? "\tpinned" : ""}`);
    return 0;
  }
  if (action !== "import") {
    console.log(USAGE);
    return action === "--help" ? 0 : 2;
  }
  if (where.files.length === 0) throw new ConfigError(`images import needs the archive to import\n${USAGE}`);
  for (const file of where.files) for (const name of await importImages(paths, file)) console.log(`imported ${name}`);
  return 0;
}

function dataDirOf(words: readonly string[]): { dataDir: string; files: string[] } {
  const at = words.indexOf("--data-dir");
  if (at < 0) return { dataDir: machineSettings().dataDir, files: [...words] };
  const dataDir = words[at + 1];
  if (dataDir === undefined) throw new ConfigError("--data-dir needs a value");
  return { dataDir, files: words.filter((_, i) => i !== at && i !== at + 1) };
}
