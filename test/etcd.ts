/**
 * Real etcd for tests: Debian's etcd-server, fetched once and unpacked beside what is built, never installed (an installed one would start).
 *
 *   await using etcd = await startEtcd();                       // one member, in memory as far as the machine allows
 *   await using etcd = await startEtcd({ members: 3, tls });    // three, over TLS with client certificates
 *   await etcd.members[0].kill(); await etcd.members[0].start();
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "./eventually.ts";

const CACHE = join(import.meta.dirname, "../dist/test-etcd");
const HOST = "127.0.0.1";
/** Ports are looked for first, and another program may be faster. */
const STARTS_MAX = 3;
const PACKAGES = ["etcd-server", "etcd-client"];

/** Where etcd and etcdctl are; fetches them if they are not there. */
export async function etcdDirectory(): Promise<string> {
  const directory = join(CACHE, "usr/bin");
  if (existsSync(join(directory, "etcd"))) return directory;
  mkdirSync(join(CACHE, ".."), { recursive: true });
  const fetched = mkdtempSync(`${CACHE}-`);
  try {
    if (!(await runs(["apt-get", "download", "-q", ...PACKAGES], fetched))) {
      await run(["apt-get", "update", "-qq"], fetched);
      await run(["apt-get", "download", "-q", ...PACKAGES], fetched);
    }
    for (const file of new Bun.Glob("*.deb").scanSync(fetched)) await run(["dpkg", "-x", file, fetched], fetched);
    if (!existsSync(CACHE)) renameSync(fetched, CACHE); // else another test was first
  } finally {
    rmSync(fetched, { recursive: true, force: true });
  }
  return directory;
}

export interface EtcdTlsFiles {
  /** Who signed etcd's certificate, and who those of its clients. */
  readonly cafile: string;
  readonly clientCafile: string;
  /** etcd's own. */
  readonly servingCertfile: string;
  readonly servingKeyfile: string;
  /** A client's. */
  readonly certfile: string;
  readonly keyfile: string;
}

export class EtcdMember {
  readonly name: string;
  readonly clientPort: number;
  readonly peerPort: number;
  readonly #arguments: readonly string[];
  #process: Bun.Subprocess | undefined;

  constructor(options: { readonly name: string; readonly clientPort: number; readonly peerPort: number; readonly arguments: readonly string[] }) {
    this.name = options.name;
    this.clientPort = options.clientPort;
    this.peerPort = options.peerPort;
    this.#arguments = options.arguments;
  }

  get pid(): number {
    return this.#process!.pid;
  }

  async start(): Promise<void> {
    const log = join(this.#arguments[1]!, "..", `${this.name}.log`);
    this.#process = Bun.spawn([join(await etcdDirectory(), "etcd"), ...this.#arguments], { stdin: "ignore", stdout: Bun.file(log), stderr: Bun.file(log), env: { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch } });
  }

  /** True once it takes connections; false if it has ended, as one whose port another program has taken meanwhile. */
  async serves(): Promise<boolean> {
    const child = this.#process!;
    for (;;) {
      if (child.exitCode !== null || child.signalCode !== null) return false;
      if (await accepts(this.clientPort)) return true;
      await Bun.sleep(50);
    }
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    this.#process?.kill(signal);
    await this.#process?.exited;
  }

  /** Neither answers nor closes its connections, as a machine that hangs. On a busy machine its threads take their time to stop. */
  async pause(): Promise<void> {
    this.#process?.kill("SIGSTOP");
    await eventually("it has stopped", async () => /\) T /.test(readFileSync(`/proc/${this.pid}/stat`, "utf8")));
  }

  resume(): void { this.#process?.kill("SIGCONT"); }
}

export interface Etcd extends AsyncDisposable {
  readonly members: readonly EtcdMember[];
  readonly endpoints: readonly string[];
  /** Runs etcdctl and returns what it printed. */
  ctl(...args: readonly string[]): Promise<string>;
}

interface StartOptions {
  readonly members?: number;
  readonly tls?: EtcdTlsFiles;
  /** Where it keeps its data: by default in memory. */
  readonly parent?: string;
}

/** All members take connections. */
export async function startEtcd(options: StartOptions = {}): Promise<Etcd> {
  for (let left = STARTS_MAX; ; left--) {
    const etcd = await begin(options);
    const serving = await Promise.all(etcd.members.map((member) => member.serves()));
    if (serving.every(Boolean)) return etcd;
    await etcd[Symbol.asyncDispose]();
    if (left === 1) throw new Error("etcd does not start");
  }
}

async function begin({ members: count = 1, tls, parent = existsSync("/dev/shm") ? "/dev/shm" : tmpdir() }: StartOptions): Promise<Etcd> {
  const binaries = await etcdDirectory();
  const directory = mkdtempSync(join(parent, "etcd-"));
  const scheme = tls ? "https" : "http";
  const places = await Promise.all(Array.from({ length: count }, async (_, i) => ({ name: `m${i}`, clientPort: await freePort(HOST), peerPort: await freePort(HOST) })));
  const cluster = places.map(({ name, peerPort }) => `${name}=http://${HOST}:${peerPort}`).join(",");
  const endpoints = places.map(({ clientPort }) => `${scheme}://${HOST}:${clientPort}`);
  const members = places.map(({ name, clientPort, peerPort }) => new EtcdMember({
    name, clientPort, peerPort,
    arguments: [
      "--data-dir", join(directory, name), "--name", name, "--logger", "zap", "--log-level", "warn", "--heartbeat-interval", "50", "--election-timeout", "500",
      "--listen-client-urls", `${scheme}://${HOST}:${clientPort}`, "--advertise-client-urls", `${scheme}://${HOST}:${clientPort}`,
      "--listen-peer-urls", `http://${HOST}:${peerPort}`, "--initial-advertise-peer-urls", `http://${HOST}:${peerPort}`, "--initial-cluster", cluster,
      ...(tls ? ["--cert-file", tls.servingCertfile, "--key-file", tls.servingKeyfile, "--trusted-ca-file", tls.clientCafile, "--client-cert-auth"] : []),
    ],
  }));
  await Promise.all(members.map((member) => member.start()));
  return {
    members, endpoints,
    ctl: (...args) => run([join(binaries, "etcdctl"), "--endpoints", endpoints.join(","), ...(tls ? ["--cacert", tls.cafile, "--cert", tls.certfile, "--key", tls.keyfile] : []), ...args], directory, { ETCDCTL_API: "3" }),
    async [Symbol.asyncDispose]() {
      await Promise.all(members.map((member) => member.kill()));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, HOST, () => { socket.destroy(); resolve(true); });
    socket.once("error", () => resolve(false));
  });
}

function freePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject).listen(0, host, () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

async function runs(command: readonly string[], cwd: string): Promise<boolean> {
  return (await Bun.spawn([...command], { cwd, stdout: "ignore", stderr: "ignore" }).exited) === 0;
}

async function run(command: readonly string[], cwd: string, env: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn([...command], { cwd, stdout: "pipe", stderr: "pipe", env: { ...process.env, ...env } });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  if (code !== 0) throw new Error(`${command.join(" ")}: exit ${code}\n${stdout}${stderr}`);
  return stdout;
}

if (import.meta.main) console.log(await etcdDirectory());
