/** Test hosts (host.sh) as values: made, used, and gone at the end of a scope. */
import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { eventually as soon } from "../eventually.ts";

const HERE = import.meta.dirname;
const CHECKOUT = join(HERE, "../..");
/** Where hosts and their switch are. Each of vitest's workers has its own: two test files use the same addresses and names. */
export const LAB = `${process.env["LAB"] ?? "/tmp/coracle-lab"}${process.env["VITEST_POOL_ID"] ?? ""}`;
const BINARY = process.env["CORACLE_BINARY"] ?? join(CHECKOUT, "dist/coracle");
/** Where test/images/build.ts put its archives. */
export const IMAGES = process.env["TEST_IMAGES"] ?? join(CHECKOUT, "dist/test-images");

/** How long anything may take, on a machine that is busy with much else: no test is about time. */
const PATIENCE_MS = 180_000;
export const eventually = <T>(what: string, ask: () => Promise<T | undefined | false>, timeoutMs = PATIENCE_MS): Promise<T> => soon(what, ask, timeoutMs);

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs host.sh. Throws when it, or what it began and what still writes to where it does, has not ended by then: with what was printed so far.
 * What hangs is ended with its host: a process on one cannot be reached from outside by the pid that was started here.
 */
async function host(args: readonly string[], { input, timeoutMs = PATIENCE_MS }: { readonly input?: string; readonly timeoutMs?: number } = {}): Promise<Finished> {
  const child = Bun.spawn(["bash", join(HERE, "host.sh"), ...args], { env: { ...process.env, LAB }, stdin: input === undefined ? "ignore" : Buffer.from(input), stdout: "pipe", stderr: "pipe" });
  const stdout = new Heard(child.stdout), stderr = new Heard(child.stderr);
  let late: NodeJS.Timeout | undefined;
  const hung = new Promise<never>((_, reject) => {
    late = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`${args.join(" ")}: no end after ${timeoutMs / 1000} s\n${stdout.text}${stderr.text}`));
    }, timeoutMs);
  });
  try {
    const [code] = await Promise.race([Promise.all([child.exited, stdout.end, stderr.end]), hung]);
    return { code, stdout: stdout.text, stderr: stderr.text };
  } finally {
    clearTimeout(late);
  }
}

/** What a stream has said so far. */
class Heard {
  text = "";
  readonly end: Promise<void>;

  constructor(stream: ReadableStream<Uint8Array<ArrayBuffer>>) {
    this.end = this.#hear(stream);
  }

  async #hear(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    for await (const piece of stream.pipeThrough(new TextDecoderStream())) this.text += piece;
  }
}

/** A machine with nothing but the compiled binary: the checkout cannot be seen on it. */
export class Host implements AsyncDisposable {
  readonly name: string;
  readonly directory: string;
  #address: string;

  private constructor(name: string, address: string) {
    this.name = name;
    this.#address = address;
    this.directory = join(LAB, name);
  }

  static async up(name: string, address: string): Promise<Host> {
    if (!existsSync(BINARY)) throw new Error(`${BINARY} is missing: npm run build`);
    await host(["down", name]); // what an interrupted run left
    return await new Host(name, address).#prepared(async (made) => {
      const { code, stderr } = await host(["up", name, address]);
      if (code !== 0) throw new Error(`host ${name} did not come up: ${stderr}`);
      mkdirSync(join(made.directory, "bin"), { recursive: true });
      cpSync(BINARY, made.binary);
      await made.ok(["mount", "-t", "tmpfs", "tmpfs", CHECKOUT]); // compiled means compiled
    });
  }

  /** A server that is Ready and has the image busybox:1. */
  static async withBusybox(name: string, address: string): Promise<Host> {
    return await (await Host.up(name, address)).#prepared(async (made) => {
      await made.start();
      await made.nodeReady();
      await made.importImage("busybox");
    });
  }

  /** Itself, once that is done; gone if it fails: nobody else can end it yet. */
  async #prepared(prepare: (made: Host) => Promise<void>): Promise<Host> {
    try {
      await prepare(this);
      return this;
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  get address(): string {
    return this.#address;
  }
  get binary(): string {
    return join(this.directory, "bin/coracle");
  }
  get dataDir(): string {
    return join(this.directory, "data");
  }
  get kubeconfig(): string {
    return join(this.directory, "kubeconfig");
  }

  run(command: readonly string[], options: { readonly input?: string; readonly timeoutMs?: number } = {}): Promise<Finished> {
    return host(["exec", this.name, "env", `KUBECONFIG=${this.kubeconfig}`, `HOME=${this.directory}`, `CORACLE_DATA_DIR=${this.dataDir}`, `CORACLE_WRITE_KUBECONFIG=${this.kubeconfig}`, ...command], options);
  }

  /** Runs and returns what was printed; throws if it fails. */
  async ok(command: readonly string[], options: { readonly input?: string; readonly timeoutMs?: number } = {}): Promise<string> {
    const { code, stdout, stderr } = await this.run(command, options);
    if (code !== 0) throw new Error(`${command.join(" ")}: exit ${code}\n${stdout}${stderr}`);
    return stdout;
  }

  kubectl(...args: readonly string[]): Promise<string> {
    return this.ok([this.binary, "kubectl", ...args]);
  }

  /** What kubectl says first, of what goes on. */
  hears(...args: readonly string[]): Promise<string> {
    const told = join(this.directory, "heard");
    return this.sh(`${this.binary} kubectl ${args.join(" ")} >${told} 2>&1 & pid=$!; for _ in $(seq 3000); do grep -q . ${told} && break; sleep 0.1; done; kill $pid; cat ${told}`);
  }

  apply(manifest: string): Promise<string> {
    return this.ok([this.binary, "kubectl", "apply", "-f", "-"], { input: manifest });
  }

  sh(script: string): Promise<string> {
    return this.ok(["sh", "-c", script]);
  }

  /** Copies a file to where the host can see it, and returns its path there. */
  bring(file: string): string {
    const path = join(this.directory, basename(file));
    cpSync(file, path);
    return path;
  }

  /** Gives the node an image of `IMAGES`; returns what was said of it. */
  importImage(name: string): Promise<string> {
    return this.ok([this.binary, "images", "import", this.bring(join(IMAGES, `${name}.tar`))]);
  }

  /** Waits until this server says that a node, its own unless named, is Ready. */
  async nodeReady(node = this.name, timeoutMs?: number): Promise<void> {
    await eventually(`node ${node} is Ready`, async () => / Ready /.test(await this.kubectl("get", "node", node, "--no-headers")), timeoutMs);
  }

  /** Starts the server in the background; its log is in `directory`. */
  async start(...flags: readonly string[]): Promise<void> {
    await this.#launch("server", flags);
  }

  /** Starts an agent in the background instead. */
  async startAgent(...flags: readonly string[]): Promise<void> {
    await this.#launch("agent", flags);
  }

  /** As root of a hardened machine does: nothing it makes is for others. */
  async #launch(command: string, flags: readonly string[]): Promise<void> {
    await this.ok(["sh", "-c", `umask 077; setsid "$0" "$@" </dev/null >>${this.directory}/coracle.log 2>&1 & echo $! > ${this.directory}/coracle.pid`, this.binary, command, "--node-name", this.name, "--kubelet-arg", "eviction-hard=memory.available<100Mi" /* how full this machine is does not matter */, ...flags]);
  }

  /** Pulls the plug, and starts the machine again with what is on its disk; nothing of ours runs afterwards. `address`: another one than before; empty: it is on no network. */
  async reboot(address = this.#address): Promise<void> {
    this.#address = address;
    const { code, stderr } = await host(["reboot", this.name, address]);
    if (code !== 0) throw new Error(`host ${this.name} did not reboot: ${stderr}`);
    await this.ok(["mount", "-t", "tmpfs", "tmpfs", CHECKOUT]);
  }

  /** Pulls its cable to the switch, or puts it in again. */
  async cable(where: "out" | "in"): Promise<void> {
    const { code, stderr } = await host(["cable", this.name, where]);
    if (code !== 0) throw new Error(`the cable of ${this.name}: ${stderr}`);
  }

  /** Puts it on the network, after a start without. */
  async plug(address: string): Promise<void> {
    this.#address = address;
    const { code, stderr } = await host(["plug", this.name, address]);
    if (code !== 0) throw new Error(`host ${this.name} got no network: ${stderr}`);
  }

  /** Gives it another address while it runs, as another lease does. */
  async readdress(address: string): Promise<void> {
    this.#address = address;
    await this.sh(`ip addr flush dev eth0; ip addr add ${address}/24 dev eth0; ip route add default via 172.30.0.254`);
  }

  async kill(signal: "TERM" | "KILL"): Promise<void> {
    await this.sh(`pid=$(cat ${this.directory}/coracle.pid); kill -${signal} $pid; while [ -d /proc/$pid ]; do sleep 0.05; done`);
  }

  log(): string {
    return readFileSync(join(this.directory, "coracle.log"), "utf8");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await host(["down", this.name]);
  }
}

export async function switchDown(): Promise<void> {
  await host(["switch", "down"]);
}
