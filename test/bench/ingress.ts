/**
 * Requests per second through a node's ingress to one endpoint, beside going there directly and beside Debian's nginx as a reverse proxy with connections kept open, in the same run.
 * Client, endpoint and each proxy are processes of their own; nginx comes from the mirror into the cache, once.
 *
 *   bun test/bench/ingress.ts [seconds for each=5] [connections=32] [nginx=Debian's, or the path of one, or none]
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { informerFactory } from "../../core/client/informer-factory.ts";
import { ENDPOINT_SLICES, INGRESS_CLASSES, INGRESSES, SERVICES } from "../../core/client/resources.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { systemRandom as random } from "../../core/lifecycle/random.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { fallbackCertificate } from "../../node/ingress/fallback-certificate.ts";
import { cacheDirectory, scratchDirectory } from "../../installers/bundle/cache.ts";
import { Apt } from "../../installers/bundle/debian.ts";
import { run } from "../../installers/bundle/run.ts";
import { ARCHITECTURES } from "../../installers/bundle/versions.ts";
import { nodeIngress } from "../../node/ingress/ingress.ts";
import { fakeApi } from "../fake-api.ts";

const PORTS = { endpoint: 31_500, http: 31_580, https: 31_543, nginx: 31_590 };
const BODY = "x".repeat(1024);
const signal = new AbortController().signal;

/** The smallest server there can be: what is measured is the way to it. */
function endpoint(): void {
  const answer = Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`);
  createServer({ noDelay: true }, (socket) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      for (let end = text.indexOf("\r\n\r\n"); end >= 0; end = text.indexOf("\r\n\r\n")) {
        socket.write(answer);
        text = text.slice(end + 4);
      }
    }).on("error", () => socket.destroy());
  }).listen(PORTS.endpoint, "127.0.0.1");
}

async function ingress(): Promise<void> {
  const api = fakeApi();
  const informers = informerFactory({ client: api.client, clock, random, log });
  const put = (ref: typeof SERVICES, object: object): Promise<unknown> => api.client.resource(ref).create(object as never, { signal });
  const as = (ref: unknown): typeof SERVICES => ref as typeof SERVICES;
  await put(SERVICES, { apiVersion: "v1", kind: "Service", metadata: { name: "web", namespace: "default" }, spec: { ports: [{ port: 80, name: "http", protocol: "TCP" }] } });
  await put(as(ENDPOINT_SLICES), { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { name: "web-1", namespace: "default", labels: { "kubernetes.io/service-name": "web" } }, addressType: "IPv4", endpoints: [{ addresses: ["127.0.0.1"], conditions: { ready: true } }], ports: [{ name: "http", port: PORTS.endpoint, protocol: "TCP" }] });
  await put(as(INGRESS_CLASSES), { apiVersion: "networking.k8s.io/v1", kind: "IngressClass", metadata: { name: "coracle" }, spec: { controller: "coracle.io/ingress-controller" } });
  await put(as(INGRESSES), { apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata: { name: "web", namespace: "default" }, spec: { ingressClassName: "coracle", rules: [{ host: "web.test", http: { paths: [{ path: "/", pathType: "Prefix", backend: { service: { name: "web", port: { name: "http" } } } }] } }] } });
  const part = nodeIngress({ client: api.client, informers, addresses: ["127.0.0.1"], ownAddresses: () => [], clusterCidrs: ["10.42.0.0/16"], serviceCidrs: ["10.43.0.0/16"], ports: PORTS, fallbackCertificate: () => fallbackCertificate(random, { nowMs: clock.nowMs(), releasedMs: 0 }), clock, random, metrics: metricsRegistry(), log });
  await Promise.all([informers, part].map((one) => one.run(signal, () => {})));
}

/** Prints one line of JSON. */
async function client(port: number, connections: number, forMs: number): Promise<void> {
  const request = Buffer.from("GET /some/path?q=1 HTTP/1.1\r\nhost: web.test\r\nuser-agent: bench\r\naccept: */*\r\n\r\n");
  const waits: number[] = [];
  let failures = 0;
  for (let i = 0; i < connections; i++) {
    let beganMs = 0, got = "";
    const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => send());
    const send = (): void => {
      beganMs = performance.now();
      socket.write(request);
    };
    socket.on("data", (chunk) => {
      got += chunk.toString("latin1");
      const head = got.indexOf("\r\n\r\n");
      if (head < 0 || got.length < head + 4 + BODY.length) return;
      if (!got.startsWith("HTTP/1.1 200")) failures++;
      waits.push(performance.now() - beganMs);
      got = "";
      send();
    }).on("error", () => { failures++; });
  }
  await clock.sleep(forMs, signal);
  waits.sort((a, b) => a - b);
  console.log(JSON.stringify({ perSecond: waits.length / (forMs / 1000), p50: waits[Math.floor(waits.length * 0.5)], p99: waits[Math.floor(waits.length * 0.99)], failures }));
  process.exit(0);
}

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** The command that starts Debian's nginx, with its own libraries: nothing is installed. */
function debianNginx(): string[] {
  const architecture = process.arch === "arm64" ? "arm64" : "amd64", suite = "bookworm";
  const directory = cacheDirectory("nginx", `${suite}-${architecture}`);
  if (!existsSync(directory)) {
    using scratch = scratchDirectory("nginx");
    const root = join(scratch.path, "root");
    mkdirSync(root);
    const apt = new Apt(architecture, [suite]);
    apt.update();
    for (const deb of apt.downloadClosure(["nginx-light"])) run("sh", ["-c", `dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --keep-directory-symlink`, "sh", deb, root]);
    apt.clean();
    mkdirSync(cacheDirectory("nginx"), { recursive: true });
    renameSync(root, directory);
  }
  const { triplet, loader } = ARCHITECTURES[architecture];
  const libraries = ["lib", "usr/lib"].map((path) => join(directory, path, triplet));
  return [join(libraries[0]!, loader), "--library-path", libraries.join(":"), join(directory, "usr/sbin/nginx")];
}

async function main(seconds: number, connections: number, nginx: readonly string[]): Promise<void> {
  const spawn = (...args: string[]) => Bun.spawn([process.execPath, import.meta.path, ...args], { stdout: "pipe", stderr: "inherit" });
  const directory = mkdtempSync(join(tmpdir(), "bench-ingress-"));
  const servers = [spawn("endpoint"), spawn("ingress")];
  const subjects: [name: string, port: number, pid: number][] = [["direct", PORTS.endpoint, servers[0]!.pid], ["ingress", PORTS.http, servers[1]!.pid]];
  if (nginx.length > 0) {
    writeFileSync(join(directory, "nginx.conf"), `daemon off; master_process off; worker_processes 1; pid ${directory}/pid; error_log ${directory}/error.log; events { worker_connections 1024; }
http { access_log off; client_body_temp_path ${directory}; proxy_temp_path ${directory}; fastcgi_temp_path ${directory}; uwsgi_temp_path ${directory}; scgi_temp_path ${directory}; keepalive_requests 1000000000;
upstream web { server 127.0.0.1:${PORTS.endpoint}; keepalive 64; keepalive_requests 1000000000; }
server { listen 127.0.0.1:${PORTS.nginx}; location / { proxy_pass http://web; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; } } }`);
    const child = Bun.spawn([...nginx, "-c", join(directory, "nginx.conf"), "-p", directory], { stdout: "ignore", stderr: "ignore" });
    servers.push(child as never);
    subjects.push(["nginx", PORTS.nginx, child.pid]);
  }
  try {
    await clock.sleep(2_000, signal);
    for (const [name, port, pid] of subjects) {
      const before = cpuSeconds(pid);
      const { perSecond, p50, p99, failures } = JSON.parse(await new Response(spawn("client", String(port), String(connections), String(seconds * 1000)).stdout).text()) as Record<string, number>;
      const microseconds = ((cpuSeconds(pid) - before) / (perSecond! * seconds)) * 1e6;
      console.log(`${name.padEnd(8)} ${perSecond!.toFixed(0).padStart(6)}/s, p50 ${p50!.toFixed(2)} ms, p99 ${p99!.toFixed(2)} ms, ${microseconds.toFixed(0)} µs of processor each, ${failures} failed`);
    }
  } finally {
    for (const server of servers) server.kill();
    rmSync(directory, { recursive: true });
  }
}

const [role, ...rest] = process.argv.slice(2);
if (role === "endpoint") endpoint();
else if (role === "ingress") await ingress();
else if (role === "client") await client(Number(rest[0]), Number(rest[1]), Number(rest[2]));
else await main(Number(role ?? 5), Number(rest[0] ?? 32), rest[1] === "none" ? [] : rest[1] === undefined ? debianNginx() : [rest[1]]);
