/**
 * Upstream's golden files for tests: one object of every kind with every field set, as JSON, protobuf and YAML. Debian ships them in golang-k8s-api-dev,
 * which is fetched once into the cache, unpacked and never installed.
 *
 * Suites move on. Of what the mirror offers the newest version of our API level is taken, whose files are in testdata/HEAD; if there is none any more, a
 * later one keeps ours as testdata/v1.36.0.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, scratchDirectory } from "../../installers/bundle/cache.ts";
import { Apt } from "../../installers/bundle/debian.ts";
import { run } from "../../installers/bundle/run.ts";

const PACKAGE = "golang-k8s-api-dev";
const MINOR = 36;
const UNPACKED = "usr/share/gocode/src/k8s.io/api/testdata";

/** Where the files of our API level are; fetches them if they are not there. */
export function goldensDirectory(): string {
  const cached = cacheDirectory("goldens", `v1.${MINOR}`);
  if (existsSync(cached)) return cached;
  const apt = new Apt("amd64", ["forky", "sid", "trixie"]);
  apt.update();
  const offered = (apt.versions([PACKAGE]).get(PACKAGE) ?? []).map(({ version }) => version);
  const version = offered.find((one) => one.startsWith(`0.${MINOR}.`)) ?? offered[0];
  if (version === undefined) throw new Error(`the Debian mirror offers no ${PACKAGE}`);
  using scratch = scratchDirectory("goldens");
  apt.download([`${PACKAGE}=${version}`], scratch.path);
  for (const deb of new Bun.Glob("*.deb.new").scanSync(scratch.path)) run("dpkg-deb", ["-x", join(scratch.path, deb), scratch.path]);
  const files = join(scratch.path, UNPACKED, version.startsWith(`0.${MINOR}.`) ? "HEAD" : `v1.${MINOR}.0`);
  if (!existsSync(files)) throw new Error(`${PACKAGE} ${version} has no golden files of Kubernetes 1.${MINOR}; the mirror offers ${offered.join(", ")}`);
  mkdirSync(join(cached, ".."), { recursive: true });
  rmSync(cached, { recursive: true, force: true });
  renameSync(files, cached);
  return cached;
}

if (import.meta.main) console.log(goldensDirectory());
