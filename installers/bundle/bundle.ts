/**
 * npm run bundle [-- --architecture amd64|arm64|all]
 *
 * Makes the release flavour of the node components (node-bundle.ts), which needs nothing from the host, for this machine's architecture or those named. As root; some minutes and
 * 4 GB of scratch space the first time, at once from the cache afterwards. `npm run build` takes it when it is there.
 */
import { statSync } from "node:fs";
import { parseArgs } from "node:util";
import { acceptedVersions } from "./debian.ts";
import { nodeBundle } from "./node-bundle.ts";
import { machineArchitecture } from "./toolchain.ts";
import type { Architecture } from "./versions.ts";

const ALL: readonly Architecture[] = ["amd64", "arm64"];

try {
  const { values } = parseArgs({ options: { architecture: { type: "string", multiple: true } } });
  const asked = values.architecture?.flatMap((name) => (name === "all" ? ALL : ALL.filter((known) => known === name))) ?? [machineArchitecture()];
  if (asked.length === 0) throw new Error("--architecture is amd64, arm64 or all");
  const accept = acceptedVersions();
  for (const architecture of new Set(asked)) {
    const startMs = performance.now();
    const { path } = await nodeBundle(architecture, "release", { accept, log: (message) => console.log(message) });
    console.log(`${path}  ${(statSync(path).size / 1e6).toFixed(1)} MB, ${((performance.now() - startMs) / 1000).toFixed(0)} s`);
  }
} catch (error) {
  console.error(`bundle.ts: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
