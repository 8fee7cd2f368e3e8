/**
 * Virtual machines with a Debian of their own (root.sh), as values: booted, used through ssh, gone at the end of a scope.
 *
 * A machine's disk is a layer over the one in the cache; a second, read-only disk (/dev/vdb) carries the checkout, the executable and the test images. eth0 leads out
 * through qemu's user network, eth1 is a cable to one other machine.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually as becomesTrue } from "../eventually.ts";

const CHECKOUT = join(import.meta.dirname, "../..");
const BINARY = process.env["CORACLE_BINARY"] ?? join(CHECKOUT, "dist/coracle");
const IMAGES = process.env["TEST_IMAGES"] ?? join(CHECKOUT, "dist/test-images");

export type Kind = "bookworm" | "trixie" | "openrc";

/** How instructions are executed: by the processor, or (VM_ACCEL=tcg) one by one in software, some thirty times slower. */
const ACCELERATION = process.env["VM_ACCEL"] ?? (existsSync("/dev/kvm") && ["kvm_intel", "kvm_amd"].some((module) => existsSync(`/sys/module/${module}`)) ? "kvm" : undefined);
/** By what times are multiplied. */
export const SLOWNESS = ACCELERATION === "tcg" ? 15 : 1;
/** How often kubectl is tried on a slow machine. */
const HANDSHAKES_MAX = 30;

/** Why no machine can be booted here; undefined: they can. */
export function obstacle(): string | undefined {
  if (process.platform !== "linux" || process.arch !== "x64") return "virtual machines are tested on Linux on x86_64";
  if (process.getuid?.() !== 0) return "building a machine's disk needs root";
  if (ACCELERATION === undefined) return "the processor does not help here: no /dev/kvm, or none of kvm_intel and kvm_amd. VM_ACCEL=tcg does without, in ten minutes on a quiet machine";
  if (!existsSync(BINARY)) return `${BINARY} is missing: npm run build`;
  if (!existsSync(join(IMAGES, "busybox.tar"))) return `${IMAGES} is missing: bun test/images/build.ts dist/test-images`;
  return undefined;
}

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface BootOptions {
  readonly kind: Kind;
  readonly name: string;
  readonly memoryMiB?: number;
  /** At which end of the cable this machine is: "/tmp/x-a" of one is "/tmp/x-b" of the other. */
  readonly cable?: { readonly path: string; readonly end: "a" | "b" };
}

/** Makes the disk that all machines see as /dev/vdb, and what takes it away. */
export function makePayload(): { readonly path: string; remove(): void } {
  const directory = mkdtempSync(join(tmpdir(), "vm-payload-"));
  const tree = join(directory, "tree");
  mkdirSync(tree);
  must("git", ["clone", "--quiet", "--depth", "1", `file://${CHECKOUT}`, join(tree, "checkout")]);
  cpSync(BINARY, join(tree, "coracle"));
  for (const image of ["busybox.tar", "redis.tar"]) copyFileSync(join(IMAGES, image), join(tree, image));
  copyFileSync(join(CHECKOUT, "test/cluster/application.yaml"), join(tree, "application.yaml"));
  const path = join(directory, "disk.img");
  must("truncate", ["-s", "1G", path]);
  must("mkfs.ext4", ["-q", "-d", tree, path]);
  rmSync(tree, { recursive: true });
  return { path, remove: () => rmSync(directory, { recursive: true, force: true }) };
}

export class Machine implements AsyncDisposable {
  readonly name: string;
  readonly #directory: string;
  readonly #qemu: ChildProcess;
  readonly #port: number;

  private constructor(name: string, directory: string, qemu: ChildProcess, port: number) {
    this.name = name;
    this.#directory = directory;
    this.#qemu = qemu;
    this.#port = port;
  }

  static async boot({ kind, name, memoryMiB = 2048, cable }: BootOptions, payload: string): Promise<Machine> {
    const root = must("bash", [join(import.meta.dirname, "root.sh"), kind]).trim();
    const directory = mkdtempSync(join(tmpdir(), `vm-${name}-`));
    must("qemu-img", ["create", "-q", "-f", "qcow2", "-F", "raw", "-b", join(root, "disk.img"), join(directory, "disk.qcow2")]);
    copyFileSync(join(root, "key"), join(directory, "key"));
    const port = await freePort();
    const wire = cable ? ["-netdev", `dgram,id=cable,local.type=unix,local.path=${cable.path}-${cable.end},remote.type=unix,remote.path=${cable.path}-${cable.end === "a" ? "b" : "a"}`, "-device", `virtio-net-pci,netdev=cable,mac=52:54:00:00:01:0${cable.end}`] : [];
    const qemu = spawn("qemu-system-x86_64", [
      "-name", name, "-accel", ACCELERATION === "tcg" ? "tcg,thread=multi,tb-size=512" : "kvm", "-cpu", "max", "-smp", "2", "-m", String(memoryMiB),
      "-nodefaults", "-no-user-config", "-display", "none", "-serial", `file:${join(directory, "console.log")}`, "-qmp", `unix:${join(directory, "qmp")},server=on,wait=off`, "-device", "virtio-rng-pci",
      "-kernel", join(root, "vmlinuz"), "-initrd", join(root, "initrd"), "-append", "root=/dev/vda rw console=ttyS0 net.ifnames=0 panic=1",
      "-drive", `file=${join(directory, "disk.qcow2")},if=virtio`, "-drive", `file=${payload},if=virtio,format=raw,readonly=on`,
      "-netdev", `user,id=out,hostfwd=tcp:127.0.0.1:${port}-:22`, "-device", "virtio-net-pci,netdev=out", ...wire,
    ], { stdio: ["ignore", "inherit", "inherit"] });
    const machine = new Machine(name, directory, qemu, port);
    try {
      await machine.#booted();
      return machine;
    } catch (error) {
      await machine[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #booted(): Promise<void> {
    await eventually(`${this.name} has booted`, async () => (await this.run("mountpoint -q /pay || { mkdir -p /pay && mount -o ro /dev/vdb /pay; }", { timeoutMs: 10_000 * SLOWNESS })).code === 0, 60_000).catch((error: unknown) => {
      throw new Error(`the console's last lines:\n${this.console().slice(-2000)}`, { cause: error });
    });
  }

  /** Runs a script as root. */
  async run(script: string, { input, timeoutMs = 60_000 * SLOWNESS }: { readonly input?: string; readonly timeoutMs?: number } = {}): Promise<Finished> {
    const options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "ConnectTimeout=5", "ControlMaster=auto", `ControlPath=${join(this.#directory, "control")}`, "ControlPersist=60"];
    const child = Bun.spawn(["ssh", ...options.flatMap((option) => ["-o", option]), "-i", join(this.#directory, "key"), "-p", String(this.#port), "root@127.0.0.1", `export KUBECONFIG=/etc/coracle/coracle.yaml; ${script}`], {
      stdin: input === undefined ? "ignore" : Buffer.from(input), stdout: "pipe", stderr: "pipe", timeout: timeoutMs, killSignal: "SIGKILL",
    });
    const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
    return { code, stdout, stderr };
  }

  /** Runs a script and returns what it printed; throws if it fails. */
  async sh(script: string, options: { readonly input?: string; readonly timeoutMs?: number } = {}): Promise<string> {
    const { code, stdout, stderr } = await this.run(script, options);
    if (code !== 0) throw new Error(`${this.name}: ${script}: exit ${code}\n${stdout}${stderr}`);
    return stdout;
  }

  async kubectl(args: string, options: { readonly input?: string } = {}): Promise<string> {
    if (SLOWNESS === 1) return await this.sh(`kubectl ${args}`, options);
    // not by way of coracle, whose start alone takes seconds here; and kubectl's ten seconds for a TLS handshake, before which nothing has been asked, are too few
    for (let tries = 1; ; tries++) {
      const { code, stdout, stderr } = await this.run(`PATH=/var/lib/coracle/agent/current/bin:$PATH; kubectl ${args}`, options);
      if (code === 0) return stdout;
      if (tries === HANDSHAKES_MAX || !stderr.includes("TLS handshake timeout")) throw new Error(`${this.name}: kubectl ${args}: exit ${code}\n${stdout}${stderr}`);
    }
  }

  async apply(manifest: string): Promise<string> {
    return await this.kubectl("apply -f -", { input: manifest });
  }

  /** The plug is pulled: what was not on the disk is gone. Returns once the machine has booted again. */
  async pullPlug(): Promise<void> {
    const before = await this.sh("cat /proc/sys/kernel/random/boot_id");
    await this.#monitor("system_reset");
    await eventually(`${this.name} boots`, async () => {
      const { code, stdout } = await this.run("cat /proc/sys/kernel/random/boot_id", { timeoutMs: 10_000 * SLOWNESS });
      return code === 0 && stdout !== before;
    }, 60_000);
    await this.#booted();
  }

  /** What the machine wrote to its serial line. */
  console(): string {
    return readFileSync(join(this.#directory, "console.log"), "utf8");
  }

  /** https://qemu.readthedocs.io/en/latest/interop/qmp-spec.html */
  async #monitor(command: string): Promise<void> {
    const socket = createConnection(join(this.#directory, "qmp"));
    await new Promise<void>((resolve, reject) => {
      let text = "";
      socket.on("error", reject);
      socket.on("data", (bytes: Buffer) => {
        text += bytes.toString();
        if ((text.match(/"return"/g)?.length ?? 0) >= 2) resolve();
      });
      socket.write(`{"execute":"qmp_capabilities"}{"execute":"${command}"}`);
    });
    socket.destroy();
    spawnSync("ssh", ["-o", `ControlPath=${join(this.#directory, "control")}`, "-O", "exit", "root@127.0.0.1"], { stdio: "ignore" }); // its connection does not know yet
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#qemu.exitCode === null && this.#qemu.signalCode === null) {
      const ended = new Promise<void>((resolve) => void this.#qemu.once("exit", () => resolve()));
      this.#qemu.kill("SIGKILL");
      await ended;
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** `timeoutMs` is for a machine with a processor of its own. */
export async function eventually<T>(what: string, ask: () => Promise<T | undefined | false>, timeoutMs = 60_000): Promise<T> { return await becomesTrue(what, ask, timeoutMs * SLOWNESS); }

function must(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 26 });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: exit ${status}\n${stdout}${stderr}`);
  return stdout;
}

async function freePort(): Promise<number> {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
