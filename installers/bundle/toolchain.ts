/**
 * The C and C++ compilers: the machine's own for its own architecture; for the other one the cross compiler if it is installed, else Debian 12's, unpacked into the
 * cache (Debian 12's, because what it links runs on glibc 2.36 and later).
 */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, hashOf, readBytes, scratchDirectory } from "./cache.ts";
import { Apt } from "./debian.ts";
import { has, run, runEach } from "./run.ts";
import { ARCHITECTURES, type Architecture } from "./versions.ts";

export interface Toolchain {
  compile(language: Language, args: readonly string[]): void;
  compileEach(language: Language, argLists: readonly (readonly string[])[]): Promise<void>;
  strip(args: readonly string[]): void;
}

type Language = "c" | "c++";

export function machineArchitecture(): Architecture {
  if (process.arch === "x64") return "amd64";
  if (process.arch === "arm64") return "arm64";
  throw new Error(`no build for ${process.arch} machines: amd64 and arm64 only`);
}

export function toolchain(architecture: Architecture): Toolchain {
  const triplet = ARCHITECTURES[architecture].triplet;
  if (architecture === machineArchitecture()) {
    for (const tool of ["gcc", "g++", "strip"]) if (!has(tool)) throw new Error(`${tool} is not installed: apt-get install g++ (installers/linux/install.sh does)`);
    return tools({ c: "gcc", "c++": "g++", strip: "strip" });
  }
  if (has(`${triplet}-g++`)) return tools({ c: `${triplet}-gcc`, "c++": `${triplet}-g++`, strip: `${triplet}-strip` });
  const root = crossRoot(architecture);
  const tool = (name: string): string => join(root, "usr/bin", `${triplet}-${name}`);
  return tools({ c: tool("gcc-12"), "c++": tool("g++-12"), strip: tool("strip") }, {
    env: { PATH: `${join(root, "usr/bin")}:${process.env["PATH"] ?? ""}`, LD_LIBRARY_PATH: join(root, "usr/lib", ARCHITECTURES[machineArchitecture()].triplet) },
    flags: [`--sysroot=${root}`, `-B${tool("")}`, `-I${join(root, "usr", triplet, "include")}`, `-L${join(root, "usr", triplet, "lib")}`],
  });
}

function tools(names: Readonly<Record<Language | "strip", string>>, { env = {}, flags = [] }: { env?: Readonly<Record<string, string>>; flags?: readonly string[] } = {}): Toolchain {
  return {
    compile: (language, args) => void run(names[language], [...flags, ...args], { env }),
    compileEach: (language, argLists) => runEach(names[language], argLists.map((args) => [...flags, ...args]), { env }),
    strip: (args) => void run(names.strip, args, { env }),
  };
}

/** Debian 12's cross compiler in a directory of its own. */
function crossRoot(architecture: Architecture): string {
  const [triplet, name] = [ARCHITECTURES[architecture].triplet, ARCHITECTURES[architecture].crossCompiler];
  const root = cacheDirectory("toolchain", `bookworm-${machineArchitecture()}-${architecture}`);
  if (existsSync(root)) return root;
  const apt = new Apt(machineArchitecture(), ["bookworm"]);
  apt.update();
  const packages = apt.downloadClosure([`g++-12-${name}`, `libc6-dev-${architecture}-cross`]);
  const temporary = `${root}.${process.pid}.tmp`;
  mkdirSync(temporary, { recursive: true });
  for (const path of packages) run("dpkg-deb", ["-x", path, temporary]);
  apt.clean();
  if (!existsSync(join(temporary, "usr/bin", `${triplet}-g++-12`))) throw new Error(`Debian's cross compiler for ${architecture} has no ${triplet}-g++-12`);
  rmSync(root, { recursive: true, force: true });
  renameSync(temporary, root);
  return root;
}

/** Programs without a C library: a few hundred bytes, nothing to install. */
const FREESTANDING = [
  "-Os", "-Wall", "-Wextra", "-static", "-nostdlib", "-ffreestanding", "-fno-builtin", "-fno-pic", "-no-pie", "-fno-asynchronous-unwind-tables", "-fno-stack-protector",
  "-Wl,-z,norelro,-z,noseparate-code,-z,noexecstack,--build-id=none,-n", "-s",
];

/** Compiles one of this folder's C programs; cached by its source. */
export function freestanding(source: string, architecture: Architecture): Uint8Array {
  const file = join(import.meta.dirname, source);
  const path = cacheDirectory("programs", `${source.replace(/\.c$/, "")}-${architecture}-${hashOf(readBytes(file), FREESTANDING.join(" "))}`);
  if (!existsSync(path)) {
    using scratch = scratchDirectory("program");
    const tools = toolchain(architecture);
    const out = join(scratch.path, "program");
    tools.compile("c", [...FREESTANDING, ...(architecture === "amd64" ? ["-fcf-protection=none"] : []), "-o", out, file]);
    tools.strip(["-R", ".comment", "-R", ".note.gnu.property", out]);
    mkdirSync(cacheDirectory("programs"), { recursive: true });
    run("cp", [out, path]);
  }
  return readBytes(path);
}
