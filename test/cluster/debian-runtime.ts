/**
 * containerd with an OCI runtime, as a Debian release brings them: run on a test host as a machine's own, for --container-runtime-endpoint.
 *
 * The programs come from the mirror, once, into the cache. runc and crun want that release's C library, which a test machine need not have: runc is content with an older one
 * (installers/bundle/glibc.ts), crun is given its own loader and libraries, at a path short enough to stand in the program in place of the usual one.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, scratchDirectory } from "../../installers/bundle/cache.ts";
import { Apt } from "../../installers/bundle/debian.ts";
import { lowerGlibc } from "../../installers/bundle/glibc.ts";
import { run } from "../../installers/bundle/run.ts";
import { ARCHITECTURES } from "../../installers/bundle/versions.ts";
import { eventually, type Host } from "./host.ts";

export interface DebianRuntime {
  readonly suite: "bookworm" | "trixie" | "sid";
  readonly oci: "runc" | "crun";
}

const ARCHITECTURE = process.arch === "arm64" ? "arm64" : "amd64";
const { triplet, loader } = ARCHITECTURES[ARCHITECTURE];
/** Where a host has the programs; the loader's path takes the place of /lib64/ld-linux-x86-64.so.2 or /lib/ld-linux-aarch64.so.1. */
const HERE = "/run/debian", LOADER = `${HERE}/ld.so`;
const PT_INTERP = 3;
const PROGRAMS = { containerd: "usr/bin", "containerd-shim-runc-v2": "usr/bin", runc: "usr/sbin", crun: "usr/bin" } as const;
const ENDPOINT = "/run/containerd/containerd.sock";

/** The programs and libraries of a release, flat in one directory of the cache. */
function programs(suite: DebianRuntime["suite"]): string {
  const directory = cacheDirectory("runtimes", `${suite}-${ARCHITECTURE}`);
  if (existsSync(directory)) return directory;
  using scratch = scratchDirectory(`runtimes-${suite}`);
  const root = join(scratch.path, "root"), made = join(scratch.path, "made");
  mkdirSync(root);
  mkdirSync(made);
  const apt = new Apt(ARCHITECTURE, [suite]);
  apt.update();
  for (const deb of apt.downloadClosure(["containerd", "runc", "crun"])) run("sh", ["-c", `dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --keep-directory-symlink`, "sh", deb, root]);
  apt.clean();
  for (const [name, where] of Object.entries(PROGRAMS)) cpSync(join(root, where, name), join(made, name));
  for (const libraries of [`usr/lib/${triplet}`, `lib/${triplet}`].map((path) => join(root, path)).filter(existsSync))
    for (const name of readdirSync(libraries)) if (/\.so\.\d/.test(name) || name === "libc.so.6") cpSync(realpathSync(join(libraries, name)), join(made, name));
  renameSync(join(made, loader), join(made, "ld.so"));
  writeFileSync(join(made, "runc"), lowerGlibc(readFileSync(join(made, "runc"))).program); // it starts itself again without variables: no libraries of its own
  writeFileSync(join(made, "crun.own"), withLoader(readFileSync(join(made, "crun"))), { mode: 0o755 });
  writeFileSync(join(made, "crun"), `#!/bin/sh\nLD_LIBRARY_PATH=${HERE} exec ${HERE}/crun.own "$@"\n`);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(cacheDirectory("runtimes"), { recursive: true });
  renameSync(made, directory);
  return directory;
}

/** The program (elf(5), 64 bits, little-endian) with another loader: PT_INTERP is a string that ends with a zero. */
function withLoader(program: Buffer): Buffer {
  const headers = Array.from({ length: program.readUInt16LE(0x38) }, (_, i) => Number(program.readBigUInt64LE(0x20)) + i * program.readUInt16LE(0x36));
  const header = headers.find((at) => program.readUInt32LE(at) === PT_INTERP)!;
  const start = Number(program.readBigUInt64LE(header + 8));
  program.fill(0, start, start + Number(program.readBigUInt64LE(header + 32)));
  program.write(LOADER, start, "latin1");
  return program;
}

/** containerd's version 2 of the configuration, which all of them read. */
const configuration = (host: Host, oci: string) => `
version = 2
root = "${host.directory}/containerd"
state = "/run/containerd/state"
[grpc]
address = "${ENDPOINT}"
[plugins."io.containerd.internal.v1.opt"]
path = "${host.directory}/containerd-opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "coracle.local/pause:1"
restrict_oom_score_adj = true
stream_server_address = "127.0.0.1"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/opt/cni/bin"
conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "${HERE}/${oci}"
`;

/** Starts it and returns its endpoint; it ends with the host. Its log is containerd.log in the host's directory. */
export async function startDebianRuntime(host: Host, { suite, oci }: DebianRuntime): Promise<string> {
  const config = join(host.directory, "containerd.toml");
  writeFileSync(config, configuration(host, oci));
  await host.sh(`ln -sfn ${programs(suite)} ${HERE} && mkdir -p /run/containerd && PATH=${HERE}:$PATH setsid ${HERE}/containerd --config ${config} </dev/null >>${host.directory}/containerd.log 2>&1 &`);
  await eventually("containerd listens", () => host.sh(`test -S ${ENDPOINT} && echo yes`));
  return `unix://${ENDPOINT}`;
}

if (import.meta.main) for (const suite of process.argv.slice(2)) console.log(programs(suite as DebianRuntime["suite"]));
