/** Both ends of the tunnel over the real https server: what it carries, who gets in, and what happens when something breaks. */
import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import * as tls from "node:tls";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { nodeCredentials, servingMaterial, testPki } from "../../test/certificates.ts";
import { connectProxy } from "../../test/connect-proxy.ts";
import { hastyServer } from "../../test/hasty-server.ts";
import { type Clock, systemClock } from "../../core/lifecycle/clock.ts";
import { systemRandom } from "../../core/lifecycle/random.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { dialTcp } from "../../core/net/dial-tcp.ts";
import type { ProxyOf } from "../../core/net/environment-proxy.ts";
import { GrpcError } from "../../core/net/grpc/status.ts";
import { type HttpsServer, httpsServer } from "../../core/net/http-server.ts";
import { type Log, silentLog } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { tunnelDialer } from "../../core/tunnel/dialer.ts";
import type { NodeSession } from "../../core/tunnel/node-session.ts";
import { type TunnelServer, tunnelServer } from "../../core/tunnel/tunnel.ts";
import { allowedAddress } from "./allow-list.ts";
import { type TunnelAgent, tunnelAgent } from "./tunnel.ts";

let pki: Awaited<ReturnType<typeof testPki>>;
const credentials = new Map<string, Awaited<ReturnType<typeof nodeCredentials>>>();
beforeAll(async () => {
  pki = await testPki();
  for (const name of ["node-1", "node-2"]) credentials.set(name, await nodeCredentials(pki, name));
});
afterAll(() => rmSync(pki.dir, { recursive: true, force: true }));

const ending: (() => Promise<void>)[] = [];
afterEach(async () => { for (const end of ending.splice(0).reverse()) await end(); });

async function start(part: Runnable): Promise<{ stop(): Promise<void> }> {
  const stop = new AbortController();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const ended = part.run(stop.signal, resolve);
  ended.catch(reject);
  await promise;
  const one = { stop: async () => { stop.abort(); await ended; } };
  ending.push(one.stop);
  return one;
}

async function startServer({ port = 0, serverId = "server-1", serverCount = 1, clock = systemClock } = {}) {
  const metrics = metricsRegistry();
  const tunnel: TunnelServer = tunnelServer({
    serverId, serverCount: () => serverCount, stopping: () => https.stopping, clock, random: systemRandom, log: silentLog, metrics,
    async authenticate(_request, { peerCertificate }) {
      const { CN = "" } = peerCertificate?.subject ?? {};
      if (peerCertificate?.authorized !== true || !CN.startsWith("system:node:")) throw new GrpcError("permission-denied", `${CN}: no node`);
      return CN.slice("system:node:".length);
    },
  });
  const https: HttpsServer = httpsServer({
    host: "127.0.0.1", port, portFlag: "--https-listen-port", tls: () => servingMaterial(pki), log: silentLog, clock: systemClock, limits: { drainMs: 2_000 },
    handler: (request, response, connection) => (tunnel.serves(request) ? tunnel.accept(request, response, connection) : void response.end("ok")), upgrade: (_request, socket) => void socket.destroy(),
  });
  const running = await start(https);
  return { tunnel, metrics, https, url: `https://127.0.0.1:${https.address()!.port}`, port: https.address()!.port, ...running };
}

test("the kubelet is dialled where it listens, however it is called; nothing else of the node is", () => {
  const list = { nodeHosts: () => ["n1", "10.0.0.7"], kubelet: { host: "10.9.9.9", port: 10250 }, podCidrs: () => [], hostPorts: () => new Set<number>() };
  expect(["n1:10250", "127.0.0.1:10250", "10.0.0.7:10250", "10.0.0.7:22"].map((address) => allowedAddress(address, list))).toEqual([list.kubelet, list.kubelet, list.kubelet, undefined]);
});

interface Given { nodeName?: string; as?: string; kubeletPort?: number; hostPorts?: number[]; log?: Log; ca?: string; clock?: Clock; proxyOf?: ProxyOf }

function agentOf(servers: string[], { nodeName = "node-1", as = nodeName, kubeletPort = 1, hostPorts = [], log = silentLog, ca, clock = systemClock, proxyOf }: Given = {}): TunnelAgent {
  const list = { nodeHosts: () => ["127.0.0.2", nodeName], kubelet: { host: "127.0.0.1", port: kubeletPort }, podCidrs: () => ["10.42.7.0/24"], hostPorts: () => new Set(hostPorts) };
  return tunnelAgent({
    nodeName, identifiers: { ipv4: ["127.0.0.2"], ipv6: [], host: [nodeName] }, servers: () => servers, credentials: () => ({ ...credentials.get(as)!, ...(ca === undefined ? {} : { ca }) }),
    allowed: (address) => allowedAddress(address, list), proxyOf, clock, random: systemRandom, log, metrics: metricsRegistry(),
  });
}

/** Something that listens on the node, as its kubelet would. */
async function listen(serve: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket.on("error", () => undefined));
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ending.push(async () => { for (const socket of sockets) socket.destroy(); server.close(); });
  return (server.address() as { port: number }).port;
}

const signal = new AbortController().signal;

async function startBoth(serve: (socket: Socket) => void) {
  const server = await startServer();
  const port = await listen(serve);
  const agent = agentOf([server.url], { kubeletPort: port });
  const { stop: stopAgent } = await start(agent);
  const session = (await server.tunnel.arrival("node-1", AbortSignal.timeout(60_000)))!;
  return { ...server, agent, stopAgent, session, kubeletPort: port, dial: () => session.dial({ host: "127.0.0.2", port, signal }) };
}

async function textOf(stream: Duplex): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

async function eventually(what: () => boolean): Promise<void> {
  await expect.poll(what, { interval: 10 }).toBe(true);
}

test("TLS goes through, both ways and whole", async () => {
  const server = await startServer();
  const kubelet = tls.createServer({ ...servingMaterial(pki) }, (socket) => socket.pipe(socket));
  await new Promise<void>((resolve) => kubelet.listen(0, "127.0.0.1", resolve));
  ending.push(async () => void kubelet.close());
  const { port } = kubelet.address() as { port: number };
  await start(agentOf([server.url], { kubeletPort: port }));
  const session = (await server.tunnel.arrival("node-1", AbortSignal.timeout(60_000)))!;
  const secured = tls.connect({ socket: await session.dial({ host: "127.0.0.2", port, signal }), ca: pki.authority("server-ca").bundlePem, servername: "localhost" });
  const sent = createHash("sha256"), got = createHash("sha256");
  const total = 8 << 20;
  let received = 0;
  const done = Promise.withResolvers<void>();
  secured.on("error", done.reject).on("data", (chunk: Buffer) => {
    got.update(chunk);
    if ((received += chunk.length) === total) done.resolve();
  });
  for (let left = total; left > 0; ) {
    const chunk = Buffer.from(systemRandom.bytes(Math.min(left, 50_000)));
    sent.update(chunk);
    left -= chunk.length;
    if (!secured.write(chunk)) await new Promise((resolve) => secured.once("drain", resolve));
  }
  await done.promise;
  expect(got.digest("hex")).toBe(sent.digest("hex"));
  secured.destroy();
  await eventually(() => session.connectionCount === 0); // closed at both ends
});

test("one direction ends, the other goes on; then nothing is left", async () => {
  const { dial, session, metrics } = await startBoth((socket) => {
    let text = "";
    socket.on("data", (chunk) => { text += String(chunk); }).on("end", () => void socket.end(`got ${text}`));
  });
  const connection = await dial();
  connection.end("a question");
  expect(await textOf(connection)).toBe("got a question");
  await eventually(() => session.connectionCount === 0);
  expect(metrics.render()).toMatch(/established_connections 0\n[\s\S]*pending_backend_dials 0\n[\s\S]*ready_backends 1\n/);
});

test("a connection that is cut off is no end of data", async () => {
  const { dial } = await startBoth((socket) => { socket.write("half"); socket.once("data", () => socket.resetAndDestroy()); });
  const connection = await dial();
  connection.write("go");
  await expect(textOf(connection)).rejects.toThrow(/ECONNRESET|reset/);
});

test("who has said all, and takes no more, is gone at the other end too", async () => {
  const { dial, session } = await startBoth((socket) => { socket.end("all").once("data", () => socket.resetAndDestroy()); });
  const connection = await dial(), got: string[] = [];
  connection.on("data", (chunk: Buffer) => got.push(chunk.toString())).on("error", () => undefined);
  await new Promise((resolve) => void connection.once("end", resolve));
  connection.write("go");
  await eventually(() => session.connectionCount === 0);
  expect(got).toEqual(["all"]);
});

/** Through an agent whose kubelet it is. */
async function dialHasty({ port }: { readonly port: number }): Promise<{ readonly session: NodeSession; readonly connection: Duplex }> {
  const server = await startServer();
  await start(agentOf([server.url], { kubeletPort: port }));
  const session = (await server.tunnel.arrival("node-1", AbortSignal.timeout(60_000)))!;
  return { session, connection: await session.dial({ host: "127.0.0.2", port, signal }) };
}

test("who closes without having read all, as a server that refuses an upload does, is heard", async () => {
  await using hasty = await hastyServer();
  const { session, connection } = await dialHasty(hasty);
  const peer = await hasty.peer, got: string[] = [];
  connection.on("data", (chunk: Buffer) => got.push(chunk.toString())).on("error", () => undefined);
  connection.write("unread");
  await systemClock.sleep(20, signal);
  connection.write("more");
  setImmediate(() => peer.write("413", () => void peer.destroy()));
  await eventually(() => session.connectionCount === 0);
  expect(got).toEqual(["413"]);
});

test("what somebody has said before the connection is reset arrives, however long that takes, and then the reset", async () => {
  await using hasty = await hastyServer();
  const { session, connection } = await dialHasty(hasty);
  connection.write("unread");
  const peer = await hasty.peer, words = "word".repeat(40_000); // more than may be on the way
  await new Promise<void>((resolve) => void peer.write(words, () => resolve()));
  await systemClock.sleep(50, signal);
  peer.destroy();
  await systemClock.sleep(50, signal);
  let got = "";
  const failed = new Promise((resolve) => void connection.on("error", resolve));
  connection.on("data", (chunk: Buffer) => { got += chunk.toString(); });
  expect(String(await failed)).toMatch(/ECONNRESET|reset/);
  expect(got.length).toBe(words.length);
  await eventually(() => session.connectionCount === 0);
});

test("a reader that stops delays nobody else, and costs no more than its window", async () => {
  let written = 0;
  const { dial } = await startBoth((socket) => {
    socket.once("data", (what) => {
      if (String(what) === "echo") return void socket.pipe(socket).write("echo");
      const go = (): void => { while (socket.write(Buffer.alloc(65_536))) written += 65_536; };
      socket.on("drain", go);
      go();
    });
  });
  const stuck = await dial();
  stuck.write("flood");
  await systemClock.sleep(300, signal);
  const before = written;
  await systemClock.sleep(300, signal);
  expect(written).toBe(before); // held back to where it comes from
  expect(stuck.arrivedBytes + stuck.readableLength).toBeLessThanOrEqual(64 * 1024 + 64 * 1024);
  const lively = await dial();
  lively.write("echo");
  await new Promise((resolve) => lively.once("data", resolve));
  expect([stuck.destroyed, written]).toEqual([false, before]); // nobody has given way
  let read = 0;
  stuck.on("data", (chunk: Buffer) => { read += chunk.length; });
  await eventually(() => read > 4 << 20); // and goes on when it is read again
  stuck.destroy();
  lively.destroy();
});

test("an agent dials nothing but its kubelet, its pods and their ports", async () => {
  const port = await listen((socket) => void socket.end("hello"));
  const { tunnel, url } = await startServer();
  await start(agentOf([url], { kubeletPort: 1, hostPorts: [port] }));
  const session = (await tunnel.arrival("node-1", AbortSignal.timeout(60_000)))!;
  await expect(session.dial({ host: "127.0.0.2", port: 22, signal })).rejects.toThrow("not allowed by the node's tunnel: 127.0.0.2:22");
  await expect(session.dial({ host: "10.42.8.1", port: 80, signal })).rejects.toThrow("not allowed");
  await expect(session.dial({ host: "169.254.169.254", port: 80, signal })).rejects.toThrow("not allowed");
  await expect(session.dial({ host: "127.0.0.2", port: 1, signal })).rejects.toThrow("dial tcp 127.0.0.1:1: connect: connection refused");
  expect(await textOf(await session.dial({ host: "127.0.0.1", port, signal }))).toBe("hello");
});

test.each<[string, Given, RegExp]>([
  ["under another node's name", { nodeName: "node-1", as: "node-2" }, /agentID is "node-1", but must be the name of the node: "node-2"/],
  ["to a server it does not know", { ca: "other" }, /self.signed|unable to verify|certificate/i],
])("an agent does not get in: %s", async (_, given, why) => {
  const { tunnel, url } = await startServer();
  const warned = Promise.withResolvers<string>();
  const log = { ...silentLog, warn: (_message: string, fields?: Record<string, unknown>) => warned.resolve(String((fields!["error"] as Error).message)) };
  await start(agentOf([url], { ...given, log, ...(given.ca ? { ca: pki.authority("client-ca").bundlePem } : {}) }));
  expect(await warned.promise).toMatch(why);
  expect(tunnel.sessionOf("node-1") ?? tunnel.sessionOf("node-2")).toBeUndefined();
});

test("a server that stops ends what runs over it at once, and its agents find its successor", async () => {
  const first = await startBoth((socket) => void socket.write("x"));
  const connection = await first.dial();
  const cut = new Promise<Error>((resolve) => connection.on("error", resolve));
  const startMs = systemClock.uptimeMs();
  await first.stop();
  expect(systemClock.uptimeMs() - startMs).toBeLessThan(5_000); // which a server gives what does not end by itself
  expect((await cut).message).toBe("the tunnel was closed");
  expect(first.agent.connected()).toEqual([]);
  const second = await startServer({ port: first.port, serverId: "server-1" });
  expect(await second.tunnel.arrival("node-1", AbortSignal.timeout(60_000))).toBeDefined();
  await eventually(() => first.agent.connected().length === 1);
});

test("two addresses of one server get one tunnel, and the second takes over from the first", async () => {
  const one = await startServer();
  const agent = agentOf([one.url, one.url.replace("127.0.0.1", "localhost")]);
  await start(agent);
  await one.tunnel.arrival("node-1", AbortSignal.timeout(60_000));
  await eventually(() => agent.connected().length > 0); // the server knows it first
  await systemClock.sleep(200, signal);
  expect(agent.connected()).toHaveLength(1);
  const first = one.tunnel.sessionOf("node-1")!;
  first.destroy();
  await eventually(() => agent.connected().length === 1 && ![undefined, first].includes(one.tunnel.sessionOf("node-1")));
});

test("several servers behind one address: there is a stream to each, and again after one has come back", async () => {
  const servers = await Promise.all(["server-1", "server-2", "server-3"].map((serverId) => startServer({ serverId, serverCount: 3 })));
  let turn = 0;
  const balancer = await listen((near) => {
    const far = connect(servers[turn++ % 3]!.port, "127.0.0.1").on("error", () => void near.destroy());
    near.on("error", () => undefined).on("close", () => void far.destroy()).pipe(far).pipe(near);
  });
  const quick: Clock = { ...systemClock, sleep: (ms, until) => systemClock.sleep(ms / 50, until), every: (ms, until) => systemClock.every(ms === 20_000 ? ms : ms / 50, until) };
  const agent = agentOf([`https://127.0.0.1:${balancer}`], { clock: quick });
  await start(agent);
  const reached = () => servers.filter(({ tunnel }) => tunnel.sessionOf("node-1")).length;
  await eventually(() => reached() === 3);
  servers[1]!.tunnel.sessionOf("node-1")!.destroy();
  await eventually(() => reached() === 3);
  await eventually(() => agent.connected().length === 3);
});

const twentyfold: Clock = {
  ...systemClock, sleep: (ms, until) => systemClock.sleep(ms / 20, until), after: (ms, work) => systemClock.after(ms / 20, work), every: (ms, until) => systemClock.every(ms / 20, until),
};

/** Bytes a millisecond: what two connections may have under way takes longer than an answer to a ping may. */
const RATE = 80;

test("on a slow link large answers arrive whole, though the signs of life wait behind it", async () => {
  const { tunnel, port } = await startServer({ clock: twentyfold });
  const way = await listen((near) => {
    const far = connect(port, "127.0.0.1").on("error", () => undefined);
    near.on("data", async (data: Buffer) => {
      near.pause();
      for (let at = 0; at < data.length; at += 4096) {
        far.write(data.subarray(at, at + 4096));
        await systemClock.sleep(4096 / RATE, signal);
      }
      near.resume();
    }).on("close", () => far.destroy());
    far.on("data", (data) => near.write(data)).on("close", () => near.destroy());
    ending.push(async () => void far.destroy());
  });
  const large = Buffer.alloc(256 * 1024, "x");
  const kubeletPort = await listen((socket) => void socket.end(large));
  await start(agentOf([`https://127.0.0.1:${way}`], { kubeletPort, clock: twentyfold }));
  const session = (await tunnel.arrival("node-1", AbortSignal.timeout(60_000)))!;
  const answers = ["a", "b"].map(async () => (await textOf(await session.dial({ host: "127.0.0.2", port: kubeletPort, signal }))).length);
  expect(await Promise.all(answers)).toEqual([large.length, large.length]);
  expect(session.closed).toBe(false);
});

test("when the way between them falls silent, both ends notice", async () => {
  const { tunnel, port } = await startServer({ clock: twentyfold });
  let silent = false;
  const way = await listen((near) => {
    const far = connect(port, "127.0.0.1").on("error", () => undefined);
    near.on("data", (data) => { if (!silent) far.write(data); }).on("close", () => { if (!silent) far.destroy(); });
    far.on("data", (data) => { if (!silent) near.write(data); }).on("close", () => { if (!silent) near.destroy(); });
    ending.push(async () => void far.destroy());
  });
  const agent = agentOf([`https://127.0.0.1:${way}`], { clock: twentyfold });
  await start(agent);
  const session = (await tunnel.arrival("node-1", AbortSignal.timeout(60_000)))!;
  await systemClock.sleep(3_000, signal); // longer than silence is borne, were there no pings
  expect([agent.connected().length, session.closed]).toEqual([1, false]);
  silent = true;
  await eventually(() => agent.connected().length === 0);
  await eventually(() => session.closed);
});

test("a pause of the own process is not the other's silence: what has come meanwhile is heard first", async () => {
  let isPaused = false;
  const pausing: Clock = {
    ...systemClock, every: (ms, until) => systemClock.every(ms / 20, until),
    after(ms, work) {
      const timer = systemClock.after(ms / 20, work);
      if (isPaused) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000); // longer than an answer may take
      isPaused = false;
      return timer;
    },
  };
  const { tunnel, url } = await startServer();
  const agent = agentOf([url], { clock: pausing });
  await start(agent);
  const session = (await tunnel.arrival("node-1", AbortSignal.timeout(60_000)))!;
  isPaused = true;
  await eventually(() => !isPaused);
  await systemClock.sleep(1_000, signal);
  expect([agent.connected().length, session.closed]).toEqual([1, false]);
});

test("an agent that stops says so, and takes its connections with it", async () => {
  const { tunnel, session, dial, stopAgent } = await startBoth((socket) => void socket.write("x"));
  const connection = await dial();
  connection.on("error", () => undefined);
  const stopped = stopAgent();
  await eventually(() => session.draining);
  expect(connection.destroyed).toBe(false);
  await stopped;
  await eventually(() => connection.destroyed && tunnel.sessionOf("node-1") === undefined);
});

test("a node that is no node any more loses its tunnel, and what goes through it", async () => {
  const { tunnel, dial, agent } = await startBoth((socket) => void socket.write("x"));
  const connection = await dial();
  const cut = new Promise<Error>((resolve) => connection.on("error", resolve));
  tunnel.disconnect("node-2", "the node was deleted");
  expect(tunnel.sessionOf("node-1")).toBeDefined();
  tunnel.disconnect("node-1", "the node was deleted");
  expect([(await cut).message, tunnel.sessionOf("node-1")]).toEqual(["the tunnel was closed", undefined]);
  await eventually(() => agent.connected().length === 0);
});

test("a dial nobody waits for any more leaves nothing behind", async () => {
  const { session, kubeletPort } = await startBoth(() => undefined);
  const quit = new AbortController();
  const dials = Array.from({ length: 50 }, () => session.dial({ host: "127.0.0.2", port: kubeletPort, signal: quit.signal }).then(() => "connected", (error: Error) => error.message));
  await systemClock.sleep(1, signal);
  quit.abort();
  const ends = await Promise.all(dials);
  await eventually(() => session.dialCount === 0 && session.connectionCount === ends.filter((end) => end === "connected").length);
});

test("which way: tunnel, straight, or whichever comes first", async () => {
  const { tunnel, url, port: apiPort } = await startServer();
  const kubelet = await listen((socket) => void socket.end("kubelet"));
  const other = await listen((socket) => void socket.end("other"));
  const tries: string[] = [];
  const direct = { connect: async (target: { host: string; port: number; signal: AbortSignal }) => { tries.push(`${target.host}:${target.port}`); return await dialTcp({ ...target, host: target.host.replace("127.0.0.2", "127.0.0.1"), timeoutMs: 1_000 }, { clock: systemClock, signal: target.signal }); } };
  const dialer = tunnelDialer({ tunnel, direct, localNode: "server", nodeOf: (host) => (host === "127.0.0.2" ? "node-1" : undefined), clock: systemClock });
  const ask = async (nodeName: string | undefined, host: string, port: number): Promise<string> => textOf(await dialer.connect({ nodeName, host, port, signal }));

  expect(await ask("node-1", "127.0.0.2", other)).toBe("other"); // no tunnel yet: straight
  const waiting = ask("node-1", "127.0.0.2", 1); // refused at once; the agent is about to come
  waiting.catch(() => undefined);
  await start(agentOf([url], { kubeletPort: kubelet }));
  await expect(waiting).rejects.toThrow("127.0.0.2:1");
  tries.length = 0;
  expect(await ask("node-1", "127.0.0.2", kubelet)).toBe("kubelet");
  expect(await ask(undefined, "127.0.0.2", kubelet)).toBe("kubelet");
  expect(tries).toEqual([]);
  expect(await ask("node-1", "127.0.0.2", other)).toBe("other"); // not one of the agent's addresses
  expect(await ask("server", "127.0.0.1", other)).toBe("other");
  expect(await ask(undefined, "127.0.0.1", other)).toBe("other");
  expect(tries).toEqual([`127.0.0.2:${other}`, `127.0.0.1:${other}`, `127.0.0.1:${other}`]);
  expect(apiPort).toBeGreaterThan(0);
});

test("a server that is reached through a proxy alone has its tunnel through the proxy", async () => {
  const server = await startServer();
  const port = await listen((socket) => void socket.end("from the node"));
  await using proxy = await connectProxy({ routes: { "127.0.0.1:7": `127.0.0.1:${server.port}` } });
  await start(agentOf(["https://127.0.0.1:7"], { kubeletPort: port, proxyOf: () => new URL(`http://127.0.0.1:${proxy.port}`) }));
  const session = (await server.tunnel.arrival("node-1", AbortSignal.timeout(60_000)))!;
  expect(await textOf(await session.dial({ host: "127.0.0.2", port, signal }))).toBe("from the node");
  expect(proxy.asked.map(({ target }) => target)).toEqual(["127.0.0.1:7"]);
});
