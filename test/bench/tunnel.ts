/**
 * What the tunnel costs, beside a direct connection in the same run: the agent and what it reaches in one process, as on a node; the server in another.
 *
 *   bun test/bench/tunnel.ts [megabytes=256] [delay in ms each way=10]
 *
 * Printed are MB/s in both directions, plain and with TLS inside (as to a kubelet), alone and eight at once; round trips of one byte; the time to dial; round trips while
 * four connections push all they can and four are not read at all; and the same throughput over a way that delays.
 */
import { mkdtempSync, rmSync, writeFileSync, readFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import * as tls from "node:tls";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { systemRandom as random } from "../../core/lifecycle/random.ts";
import { type HttpsServer, httpsServer } from "../../core/net/http-server.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { type TunnelServer, tunnelServer } from "../../core/tunnel/tunnel.ts";
import { tunnelAgent } from "../../node/tunnel/tunnel.ts";
import { nodeCredentials, servingMaterial, testPki } from "../certificates.ts";

interface Ports { readonly plain: number; readonly tls: number }
interface Given { readonly servers: readonly string[]; readonly credentials: { ca: string; cert: string; key: string }; readonly serving: { key: string; cert: string } }
const signal = new AbortController().signal;
const portOf = (server: Server | tls.Server): number => (server.address() as { port: number }).port;

/** The first byte says what is wanted: "d" all there is, "u" to take it all and say "." after each MiB, "e" an echo. */
function serve(socket: Socket | tls.TLSSocket): void {
  socket.on("error", () => undefined);
  socket.once("data", (first: Buffer) => {
    const chunk = Buffer.alloc(64 * 1024);
    let taken = first.length - 1;
    switch (String.fromCharCode(first[0]!)) {
      case "d": {
        const go = (): void => { while (socket.writable && socket.write(chunk)); };
        socket.on("drain", go);
        return go();
      }
      case "u": return void socket.on("data", (data) => {
        for (taken += data.length; taken >= 1 << 20; taken -= 1 << 20) socket.write(".");
      });
      default:
        socket.write(first.subarray(1));
        return void socket.pipe(socket);
    }
  });
}

async function listening<S extends Server | tls.Server>(server: S): Promise<S> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

async function node(file: string): Promise<void> {
  const { servers, credentials, serving } = JSON.parse(readFileSync(file, "utf8")) as Given;
  const plain = await listening(createServer({ noDelay: true }, serve));
  const secure = await listening(tls.createServer({ ...serving, noDelay: true } as tls.TlsOptions, serve));
  for (const server of servers) { // a node for each way to the server
    const nodeName = `node-${servers.indexOf(server)}`;
    const agent = tunnelAgent({
      nodeName, identifiers: { ipv4: [], ipv6: [], host: [nodeName] }, servers: () => [server], credentials: () => credentials,
      allowed: (address) => ({ host: "127.0.0.1", port: Number(address.split(":")[1]) }), clock, random, log, metrics: metricsRegistry(),
    });
    void agent.run(signal, () => undefined);
  }
  console.log(JSON.stringify({ plain: portOf(plain), tls: portOf(secure) }));
}

/** Passes on to `target`, each way `delayMs` late. */
async function way(target: number, delayMs: number): Promise<void> {
  const late = (from: Socket, to: Socket): void => {
    from.on("data", (data) => setTimeout(() => { if (to.writable && !to.write(data)) from.pause(); }, delayMs));
    to.on("drain", () => from.resume());
    from.on("error", () => to.destroy()).on("close", () => setTimeout(() => to.destroy(), delayMs));
  };
  const server = await listening(createServer({ noDelay: true }, (socket) => {
    const other = connect({ port: target, host: "127.0.0.1", noDelay: true });
    late(socket, other);
    late(other, socket);
  }));
  console.log(JSON.stringify({ port: portOf(server) }));
}

async function child<T>(...args: string[]): Promise<{ said: T; kill(): void }> {
  const process_ = Bun.spawn([process.execPath, import.meta.filename, ...args], { stdout: "pipe", stderr: "inherit" });
  const { value } = await process_.stdout.getReader().read();
  return { said: JSON.parse(Buffer.from(value!).toString()) as T, kill: () => process_.kill() };
}

async function main(megabytes: number, delayMs: number): Promise<void> {
  const pki = await testPki();
  const dir = mkdtempSync(join(tmpdir(), "tunnel-bench-"));
  const tunnel: TunnelServer = tunnelServer({ serverId: "bench", serverCount: () => 1, authenticate: async ({ headers }) => String(headers["agentid"]), stopping: () => https.stopping, clock, random, log, metrics: metricsRegistry() });
  const https: HttpsServer = httpsServer({ host: "127.0.0.1", port: 0, portFlag: "--port", tls: () => servingMaterial(pki), log, clock, handler: (request, response, connection) => tunnel.accept(request, response, connection), upgrade: (_, socket) => void socket.destroy() });
  await new Promise<void>((resolve) => void https.run(signal, resolve));
  const port = https.address()!.port;
  const slow = await child<{ port: number }>("way", String(port), String(delayMs));
  const { key, cert } = servingMaterial(pki);
  const given: Given = { servers: [port, slow.said.port].map((one) => `https://127.0.0.1:${one}`), credentials: await nodeCredentials(pki, "node"), serving: { key, cert } };
  const file = join(dir, "given.json");
  writeFileSync(file, JSON.stringify(given));
  const far = await child<Ports>("node", file);
  const slowPlain = await child<{ port: number }>("way", String(far.said.plain), String(delayMs));
  const sessions = (await Promise.all(["node-0", "node-1"].map((name) => tunnel.arrival(name, AbortSignal.timeout(10_000))))).map((session) => session!);

  const straight = async (to: number): Promise<Duplex> => { const socket = connect({ port: to, host: "127.0.0.1", noDelay: true }); await new Promise((resolve) => socket.once("connect", resolve)); return socket; };
  const through = async (to: number): Promise<Duplex> => await sessions[0]!.dial({ host: "127.0.0.1", port: to, signal });
  const throughSlow = async (to: number): Promise<Duplex> => await sessions[1]!.dial({ host: "127.0.0.1", port: to, signal });
  const secured = (dial: (to: number) => Promise<Duplex>) => async (): Promise<Duplex> => {
    const socket = tls.connect({ socket: await dial(far.said.tls), ca: given.credentials.ca, servername: "localhost" });
    await new Promise((resolve) => socket.once("secureConnect", resolve));
    return socket;
  };
  const plain = (dial: (to: number) => Promise<Duplex>, to = far.said.plain) => () => dial(to);

  const row = (name: string, a: number, b: number, unit: string): void => console.log(`${name.padEnd(48)} ${a.toFixed(unit === "ms" ? 3 : 0).padStart(8)} ${b.toFixed(unit === "ms" ? 3 : 0).padStart(8)} ${unit.padEnd(5)} × ${(b / a).toFixed(2)}`);
  console.log(`${"".padEnd(48)} ${"direct".padStart(8)} ${"tunnel".padStart(8)}`);
  const size = megabytes << 20;
  row("from the node", await download(plain(straight), size), await download(plain(through), size), "MB/s");
  row("to the node", await upload(plain(straight), size), await upload(plain(through), size), "MB/s");
  row("from the node, TLS inside", await download(secured(straight), size), await download(secured(through), size), "MB/s");
  row("to the node, TLS inside", await upload(secured(straight), size), await upload(secured(through), size), "MB/s");
  row("from the node, eight connections", await eight(plain(straight), size), await eight(plain(through), size), "MB/s");
  const [a, b] = [await roundTrips(plain(straight), 3_000), await roundTrips(plain(through), 3_000)];
  row("a byte there and back, median", a.median, b.median, "ms");
  row("a byte there and back, 99th", a.p99, b.p99, "ms");
  row("dial and a byte back, median", await dials(plain(straight), 300), await dials(plain(through), 300), "ms");

  const busy = async (dial: (to: number) => Promise<Duplex>): Promise<{ median: number; p99: number }> => {
    const pushing = await Promise.all(Array.from({ length: 8 }, () => dial(far.said.plain)));
    for (const [i, one] of pushing.entries()) {
      one.on("error", () => undefined).write("d");
      if (i < 4) one.on("data", () => undefined);
    }
    await clock.sleep(500, signal);
    const found = await roundTrips(plain(dial), 500);
    for (const one of pushing) one.destroy();
    await clock.sleep(200, signal);
    return found;
  };
  const [c, d] = [await busy(straight), await busy(through)];
  row("the same beside 4 that push and 4 unread, median", c.median, d.median, "ms");
  row("the same beside 4 that push and 4 unread, 99th", c.p99, d.p99, "ms");

  const less = size / 8;
  row(`from the node, ${2 * delayMs} ms away`, await download(plain(straight, slowPlain.said.port), less), await download(plain(throughSlow), less), "MB/s");
  row(`to the node, ${2 * delayMs} ms away`, await upload(plain(straight, slowPlain.said.port), less), await upload(plain(throughSlow), less), "MB/s");
  for (const one of [far, slow, slowPlain]) one.kill();
  rmSync(dir, { recursive: true });
  rmSync(pki.dir, { recursive: true });
  process.exit();
}

type Dial = () => Promise<Duplex>;
const rate = (bytes: number, sinceMs: number): number => bytes / 1e6 / ((clock.uptimeMs() - sinceMs) / 1_000);

async function download(dial: Dial, size: number): Promise<number> {
  const connection = (await dial()).on("error", () => undefined);
  const startMs = clock.uptimeMs();
  let got = 0;
  connection.write("d");
  await new Promise<void>((resolve) => connection.on("data", (data: Buffer) => { if ((got += data.length) >= size) resolve(); }));
  const found = rate(got, startMs);
  connection.destroy();
  await clock.sleep(100, signal);
  return found;
}

async function upload(dial: Dial, size: number): Promise<number> {
  const connection = (await dial()).on("error", () => undefined);
  const chunk = Buffer.alloc(64 * 1024);
  const startMs = clock.uptimeMs();
  connection.write("u");
  let told = 0;
  const all = new Promise<void>((resolve) => connection.on("data", (data: Buffer) => { if ((told += data.length) >= size >> 20) resolve(); }));
  for (let sent = 0; sent < size; sent += chunk.length) if (!connection.write(chunk)) await new Promise((resolve) => connection.once("drain", resolve));
  await all;
  const found = rate(size, startMs);
  connection.destroy();
  return found;
}

async function eight(dial: Dial, size: number): Promise<number> {
  const startMs = clock.uptimeMs();
  await Promise.all(Array.from({ length: 8 }, () => download(dial, size / 8)));
  return rate(size, startMs);
}

async function roundTrips(dial: Dial, count: number): Promise<{ median: number; p99: number }> {
  const connection = (await dial()).on("error", () => undefined);
  const times: number[] = [];
  connection.write("e");
  await clock.sleep(50, signal);
  for (let i = 0; i < count; i++) {
    const startMs = clock.uptimeMs();
    connection.write("x");
    await new Promise((resolve) => connection.once("data", resolve));
    times.push(clock.uptimeMs() - startMs);
  }
  connection.destroy();
  times.sort((a, b) => a - b);
  return { median: times[count >> 1]!, p99: times[Math.floor(count * 0.99)]! };
}

async function dials(dial: Dial, count: number): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const startMs = clock.uptimeMs();
    const connection = (await dial()).on("error", () => undefined);
    connection.write("ex");
    await new Promise((resolve) => connection.once("data", resolve));
    times.push(clock.uptimeMs() - startMs);
    connection.destroy();
  }
  return times.sort((a, b) => a - b)[count >> 1]!;
}

const [what, first = "", second = ""] = process.argv.slice(2);
if (what === "node") await node(first);
else if (what === "way") await way(Number(first), Number(second));
else await main(Number(what ?? 256), Number(first || 10));
