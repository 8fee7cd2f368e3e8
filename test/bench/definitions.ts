/**
 * What many CustomResourceDefinitions cost: `bun test/bench/definitions.ts [--count 500] [--kubeconfig <file> --pids <pid>,<pid>]` on the compiled binary, as api.ts has it.
 *
 * Each has a schema of some 40 kB, as large operators' have: nested objects, quantities with their pattern, lists of maps, long descriptions. Prints how many are created a second by
 * four clients, CPU of one and memory with all of them; OpenAPI v2 as JSON and as protobuf, and the slowest get of another client meanwhile; and the server started again.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readKubeconfig } from "../../cmd/kubeconfig-file.ts";
import { compiledBench, isWritten, percentile, processUse } from "./compiled.ts";

const { values } = parseArgs({ options: { count: { type: "string", default: "500" }, port: { type: "string", default: "16445" }, kubeconfig: { type: "string" }, pids: { type: "string", default: "" } } });
const count = Number(values.count);
const CLIENTS = 4;
const OPENAPI_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

await using bench = compiledBench();
const kubeconfig = values.kubeconfig ?? join(bench.directory, "kubeconfig");
const args = ["server", "--disable-agent", "--disable", "controllers,scheduler,dns,local-storage", "--write-kubeconfig", kubeconfig, "--https-listen-port", values.port, "--bind-address", "127.0.0.1", "--node-name", "bench", "--log-level", "warn"];
const server = values.kubeconfig === undefined ? bench.start("server", args) : undefined;
const { memoryMb, cpuMs } = server ?? processUse(values.pids.split(",").map(Number));
await bench.until("the server writes its kubeconfig", () => isWritten(kubeconfig));
const { server: url, credentials } = readKubeconfig(kubeconfig);
const { ca, cert, key } = credentials as { ca: string; cert: string; key: string };

async function ask(method: string, path: string, { body, accept = "application/json" }: { readonly body?: unknown; readonly accept?: string } = {}): Promise<Buffer> {
  const response = await fetch(url + path, { method, headers: { accept, "user-agent": "bench/1", "content-type": "application/json" }, tls: { ca, cert, key }, ...(body !== undefined && { body: JSON.stringify(body) }) } as RequestInit);
  const bytes = Buffer.from(await response.arrayBuffer());
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${bytes.toString().slice(0, 300)}`);
  return bytes;
}

const QUANTITY = { anyOf: [{ type: "integer" }, { type: "string" }], pattern: String.raw`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`, "x-kubernetes-int-or-string": true };
const text = (of: string): string => `${of} says how the operator should treat what it looks after. ${"It is told in a few words, as generated schemas have it. ".repeat(2)}`;
const container = (i: number): object => ({
  description: text(`container ${i}`), type: "object", required: ["name"],
  properties: {
    name: { type: "string", minLength: 1, maxLength: 63, pattern: "^[a-z0-9-]+$", description: text("name") },
    resources: { type: "object", properties: { limits: { type: "object", additionalProperties: QUANTITY }, requests: { type: "object", additionalProperties: QUANTITY } } },
    env: { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], items: { type: "object", required: ["name"], properties: { name: { type: "string" }, value: { type: "string", description: text("value") } } } },
    ports: { type: "array", items: { type: "object", properties: { port: { type: "integer", format: "int32", minimum: 1, maximum: 65535 }, protocol: { type: "string", enum: ["TCP", "UDP"], default: "TCP" } } } },
  },
});
const schema = { type: "object", properties: {
  apiVersion: { type: "string" }, kind: { type: "string" }, metadata: { type: "object" },
  spec: { type: "object", properties: Object.fromEntries(Array.from({ length: 24 }, (_, i) => [`part${i}`, container(i)])) },
  status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
} };
const definition = (i: number): object => ({
  apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: `things${i}.group${i % 50}.example.com` },
  spec: { group: `group${i % 50}.example.com`, scope: "Namespaced", names: { plural: `things${i}`, singular: `thing${i}`, kind: `Thing${i}`, listKind: `Thing${i}List` }, versions: [{ name: "v1", served: true, storage: true, subresources: { status: {} }, schema: { openAPIV3Schema: schema } }] },
});

console.log(`${count} definitions of ${(JSON.stringify(definition(0)).length / 1024).toFixed(0)} kB; ${memoryMb().toFixed(0)} MB before`);
const times: number[] = [];
let next = 0;
const beforeMs = performance.now(), beforeCpu = cpuMs();
await Promise.all(Array.from({ length: CLIENTS }, async () => {
  for (let i = next++; i < count; i = next++) {
    const startMs = performance.now();
    await ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: definition(i) });
    times.push(performance.now() - startMs);
  }
}));
const tookMs = performance.now() - beforeMs;
times.sort((a, b) => a - b);
console.log(`created by ${CLIENTS} clients: ${(count / tookMs * 1000).toFixed(0)}/s, p50 ${percentile(times, 50).toFixed(0)} ms, p99 ${percentile(times, 99).toFixed(0)} ms, ${((cpuMs() - beforeCpu) / count).toFixed(1)} ms of CPU each, ${memoryMb().toFixed(0)} MB`);
await bench.until("the last is served", () => ask("GET", `/apis/group${(count - 1) % 50}.example.com/v1/namespaces/default/things${count - 1}`).then(() => true, () => false));

/** Runs `work` while another client asks, and tells the slowest of its answers. */
async function beside(label: string, work: () => Promise<Buffer>): Promise<void> {
  let slowestMs = 0, isOver = false;
  const other = (async () => {
    while (!isOver) {
      const startMs = performance.now();
      await ask("GET", "/api/v1/namespaces/default");
      slowestMs = Math.max(slowestMs, performance.now() - startMs);
      await Bun.sleep(5);
    }
  })();
  const startMs = performance.now(), startCpu = cpuMs();
  const { length } = await work();
  const workMs = performance.now() - startMs;
  isOver = true;
  await other;
  console.log(`${label}: ${(length / 2 ** 20).toFixed(1)} MB in ${workMs.toFixed(0)} ms, ${(cpuMs() - startCpu).toFixed(0)} ms of CPU; another's get at most ${slowestMs.toFixed(0)} ms; ${memoryMb().toFixed(0)} MB`);
}
for (const accept of ["application/json", OPENAPI_PROTOBUF]) for (const when of ["made", "again"]) await beside(`OpenAPI v2, ${accept === OPENAPI_PROTOBUF ? "protobuf" : "JSON"}, ${when}`, () => ask("GET", "/openapi/v2", { accept }));
await beside("all definitions", () => ask("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"));

if (server) {
  await bench.kill(server);
  const startMs = performance.now();
  const again = bench.start("server", args);
  await bench.until("the server is ready again", () => ask("GET", "/readyz").then(() => true, () => false));
  console.log(`started again: ready in ${(performance.now() - startMs).toFixed(0)} ms, ${again.cpuMs().toFixed(0)} ms of CPU, ${again.memoryMb().toFixed(0)} MB`);
}
