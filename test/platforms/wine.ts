/**
 * Windows programs on this machine: wine in a chroot (debian.ts), with a Windows of its own that is made once and kept in the cache.
 *
 *   await using windows = await openWindows({ programs: [coracleExe] });
 *   await windows.run("coracle.exe", ["version"]);                       // C:\programs\coracle.exe
 */
import { copyFileSync, existsSync, linkSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { cacheDirectory, hashOf } from "../../installers/bundle/cache.ts";
import { wineRoot } from "./debian.ts";
import { type Finished, finish, Running } from "./processes.ts";

export interface Windows extends AsyncDisposable {
  /** A directory of this machine's that Windows knows as C:\here. */
  readonly here: string;
  /** Where this machine finds what Windows has on drive C. */
  pathOf(windowsPath: string): string;
  /** `program`: one of the given ones, or one of wine's own. */
  run(program: string, args: readonly string[], options?: { readonly timeoutMs?: number }): Promise<Finished>;
  start(program: string, args: readonly string[]): Running;
}

const ENVIRONMENT = { WINEDEBUG: "-all", WINEARCH: "win64", HOME: "/root", WINEPREFIX: "/prefix", NODE_EXTRA_CA_CERTS: "" };
/** Run with a root of its own: $1 the root, $2 the prefix, $3 the programs, $4 the directory to share. */
const INSIDE = `set -e
mount --rbind /proc "$1/proc"; mount --rbind /dev "$1/dev"
mount --bind "$2" "$1/prefix"; mount --bind "$3" "$1/programs"; mount --bind "$4" "$1/here"
root=$1; shift 4; exec chroot "$root" "$@"`;

export async function openWindows({ programs }: { readonly programs: readonly string[] }): Promise<Windows> {
  const root = wineRoot();
  const directory = mkdtempSync(join(tmpdir(), "coracle-windows-"));
  const [bin, here] = [join(directory, "programs"), join(directory, "here")];
  for (const path of [bin, here]) mkdirSync(path);
  for (const program of programs) placeIn(bin, program);
  const command = (prefix: string, args: readonly string[]): string[] => ["unshare", "--mount", "--propagation", "private", "sh", "-c", INSIDE, "sh", root, prefix, bin, here, ...args];

  const prefix = cacheDirectory("platforms", `windows-${hashOf(root)}`);
  if (!existsSync(prefix)) {
    const temporary = `${prefix}.${process.pid}.tmp`;
    mkdirSync(temporary, { recursive: true });
    const { code, stderr } = await finish(command(temporary, ["/usr/lib/wine/wine64", "wineboot", "--init"]), { env: ENVIRONMENT });
    if (!existsSync(join(temporary, "system.reg"))) throw new Error(`wine has made no Windows: exit ${code}\n${stderr.slice(-2000)}`);
    await finish(command(temporary, ["/usr/lib/wine/wineserver", "--kill"]), { env: ENVIRONMENT });
    copyFileSync(join(root, "usr/x86_64-w64-mingw32/lib/zlib1.dll"), join(temporary, "drive_c/windows/system32/zlib1.dll"));
    renameSync(temporary, prefix);
  }
  for (const left of ["var", "etc"]) rmSync(join(prefix, "drive_c", left), { recursive: true, force: true }); // of another run
  for (const [name, target] of [["programs", "/programs"], ["here", "/here"]] as const) await finish(["ln", "-sfn", target, join(prefix, "drive_c", name)]);

  const inWine = (program: string, args: readonly string[]): string[] => command(prefix, ["/usr/lib/wine/wine64", existsSync(join(bin, program)) ? `C:\\programs\\${program}` : program, ...args]);
  return {
    here,
    pathOf: (windowsPath) => join(prefix, "drive_c", ...windowsPath.replace(/^[Cc]:/, "").split(/[\\/]/)),
    run: (program, args, options) => finish(inWine(program, args), { ...options, env: ENVIRONMENT }),
    start: (program, args) => new Running(inWine(program, args), { name: program, env: ENVIRONMENT }),
    async [Symbol.asyncDispose]() {
      await finish(command(prefix, ["/usr/lib/wine/wineserver", "--kill"]), { env: ENVIRONMENT });
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function placeIn(directory: string, program: string): void {
  const target = join(directory, basename(program));
  try {
    linkSync(program, target);
  } catch {
    copyFileSync(program, target); // on another file system
  }
}
