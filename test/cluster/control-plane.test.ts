/** A control plane alone, on the compiled binary: an API server behind it, the audit log, overload, traces, and what it tells of itself. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemRandom } from "../../core/lifecycle/random.ts";
import { altNamesOf } from "../../core/pki/alt-names.ts";
import { authority, generateKey, keyPem, selfSign } from "../../core/pki/authority.ts";
import { spkiOf } from "../../core/pki/signature.ts";
import { eventually, Host, switchDown } from "./host.ts";

const POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: RequestResponse, omitManagedFields: true, resources: [{group: "", resources: [configmaps]}], users: [system:admin]}
- {level: Metadata, resources: [{group: authorization.k8s.io}]}
`;
const TRACING = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: 127.0.0.1:4399\nsamplingRatePerMillion: 1000000\n";
const PORT = 8443;
/** A line of Prometheus' text format: a family's description or type, or a sample. */
const METRICS_LINE = /^(# (HELP [a-z_:][\w:]* .+|TYPE [a-z_:][\w:]* (counter|gauge|histogram|summary))|[a-z_:][\w:]*(\{([a-z_]\w*="([^"\\]|\\["\\n])*",?)+\})? ([-+]?[\d.]+(e[-+]?\d+)?|[-+]Inf|NaN))$/i;
let host: Host;
let path: (name: string) => string;

beforeAll(async () => {
  host = await Host.up("plane", "172.30.0.51");
  path = (name) => join(host.directory, name);
  writeFileSync(path("policy.yaml"), POLICY);
  writeFileSync(path("tracing.yaml"), TRACING);
  const settings = [`audit-policy-file=${path("policy.yaml")}`, `audit-log-path=${path("audit.log")}`, `tracing-config-file=${path("tracing.yaml")}`, "max-requests-inflight=20", "max-mutating-requests-inflight=10"];
  await host.start("--disable-agent", ...settings.flatMap((setting) => ["--kube-apiserver-arg", setting]));
  await eventually("the server is ready", async () => (await host.kubectl("get", "--raw", "/readyz")) === "ok");
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await switchDown();
});

const raw = (where: string): Promise<string> => host.kubectl("get", "--raw", where);
const condition = async (): Promise<string> => (await host.kubectl("get", "apiservice", "v1.extension.example.com", "-o", "jsonpath={.status.conditions[0].status} {.status.conditions[0].reason}")).trim();

test("what the server serves is registered, custom resources too, and goes with them", async () => {
  await eventually("local APIServices", async () => /^v1\.apps\s+Local\s+True/m.test(await host.kubectl("get", "apiservices")));
  const crd = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: "sheds.garden.example.com" }, spec: { group: "garden.example.com", scope: "Namespaced", names: { plural: "sheds", kind: "Shed" }, versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }] } };
  await host.apply(JSON.stringify(crd));
  await eventually("its APIService", async () => (await host.kubectl("get", "apiservice", "v1.garden.example.com", "-o", "jsonpath={.metadata.labels}")).includes('"true"'));
  await host.kubectl("delete", "crd", "sheds.garden.example.com");
  await eventually("it is gone", async () => !(await host.kubectl("get", "apiservices")).includes("garden"));
});

test("an API server behind this one: found wanting, then available, and asked in the caller's name", async () => {
  const nowMs = Date.now();
  const period = { notBeforeMs: nowMs - 60_000, notAfterMs: nowMs + 3_600_000 };
  const [caKey, key] = [await generateKey(), await generateKey()];
  const ca = authority(selfSign("extension", { key: caKey, random: systemRandom, ...period }), keyPem(caKey), systemRandom);
  writeFileSync(path("ext.crt"), ca.issue({ subject: { commonName: "extension", organizations: [] }, spki: spkiOf(key), usages: ["digital signature", "server auth"], altNames: altNamesOf(["extension.default.svc"]), ...period }));
  writeFileSync(path("ext.key"), keyPem(key));
  await host.apply(JSON.stringify({ apiVersion: "apiregistration.k8s.io/v1", kind: "APIService", metadata: { name: "v1.extension.example.com" }, spec: { group: "extension.example.com", version: "v1", groupPriorityMinimum: 2000, versionPriority: 200, caBundle: Buffer.from(ca.bundlePem).toString("base64"), service: { name: "extension", namespace: "default", port: 443 } } }));
  await eventually("no service", async () => (await condition()) === "False ServiceNotFound");
  await expect(raw("/apis/extension.example.com/v1")).rejects.toThrow("the server is currently unable to handle the request");
  await host.apply(JSON.stringify({ apiVersion: "v1", kind: "Service", metadata: { name: "extension" }, spec: { ports: [{ port: 443, targetPort: PORT }] } }));
  await eventually("no endpoints", async () => (await condition()) === "False EndpointsNotFound");
  await host.apply(JSON.stringify({ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { name: "extension-1", labels: { "kubernetes.io/service-name": "extension" } }, addressType: "IPv4", endpoints: [{ addresses: [host.address] }], ports: [{ name: "", port: PORT }] }));
  await eventually("nobody answers", async () => (await condition()) === "False FailedDiscoveryCheck");
  writeFileSync(path("front-ca.crt"), JSON.parse(await host.kubectl("get", "cm", "-n", "kube-system", "extension-apiserver-authentication", "-o", "json")).data["requestheader-client-ca-file"]);
  const [bun, script] = [host.bring(process.execPath), host.bring(join(import.meta.dirname, "extension.js"))];
  await host.sh(`setsid ${bun} ${script} ${PORT} ${path("ext.crt")} ${path("ext.key")} ${path("front-ca.crt")} ${path("ext.log")} </dev/null >${path("ext.out")} 2>&1 &`);
  await eventually("it is available", async () => (await condition()) === "True Passed");

  expect(await host.kubectl("get", "--raw", "/apis/extension.example.com/v1/namespaces/default/things", "--as=jane", "--as-group=system:masters")).toContain('"ThingList"');
  const asked = readFileSync(path("ext.log"), "utf8").trim().split("\n").map((line) => JSON.parse(line) as { path: string; name: string; groups: string; authorization: unknown });
  expect(asked.find((one) => one.path.endsWith("/things"))).toMatchObject({ name: "jane", authorization: null, groups: expect.stringContaining("system:masters") });
  await expect(host.kubectl("get", "--raw", "/apis/extension.example.com/v1/things", "--as=joe")).rejects.toThrow("Forbidden");
});

test("its resources are found, shown, made and watched like our own", async () => {
  await eventually("discovery", async () => (await host.kubectl("api-resources", "--api-group=extension.example.com", "-o", "name")).includes("things.extension.example.com"));
  const manifest = JSON.stringify({ apiVersion: "extension.example.com/v1", kind: "Thing", metadata: { name: "two" } });
  expect(await host.ok([host.binary, "kubectl", "create", "--validate=false", "-f", "-"], { input: manifest })).toContain("thing.extension.example.com/two created");
  expect(await host.kubectl("get", "th", "-o", "name")).toBe("thing.extension.example.com/one\nthing.extension.example.com/two\n");
  await expect(host.kubectl("get", "thing", "three")).rejects.toThrow('things.extension.example.com "three" not found');
  expect(await host.hears("get", "--raw", "'/apis/extension.example.com/v1/things?watch=1'")).toContain('"type":"ADDED"');
  const tls = join(host.dataDir, "server/tls");
  const upgraded = await host.sh(`curl -ski -m 5 --http1.1 --cert ${tls}/client-admin.crt --key ${tls}/client-admin.key -H 'Connection: Upgrade' -H 'Upgrade: websocket' https://127.0.0.1:6443/apis/extension.example.com/v1/things/one/exec; true`);
  expect(upgraded).toMatch(/^HTTP\/1\.1 101 /);
  expect((await raw("/apis")).indexOf("extension.example.com")).toBeLessThan((await raw("/apis")).indexOf("metrics.k8s.io"));
  await eventually("OpenAPI", async () => (await host.kubectl("explain", "thing.size")).includes("How large it is."));
  expect(await raw("/openapi/v2")).toContain("com.example.Thing");
});

test("what was asked stands in the audit log, with who asked and what was said to it", async () => {
  await host.kubectl("create", "configmap", "noted", "--from-literal=a=b");
  await host.kubectl("auth", "can-i", "get", "pods", "--as=jane").catch(() => "no");
  const events = await eventually("both are there", () => Promise.resolve((() => {
    const lines = readFileSync(path("audit.log"), "utf8").trim().split("\n").map((line) => JSON.parse(line) as { level: string; verb: string; objectRef: { resource: string; name?: string }; impersonatedUser?: object; requestObject?: { data: object }; responseObject?: { metadata: object } });
    const found = [lines.find(({ objectRef: { name }, verb }) => name === "noted" && verb === "create"), lines.find(({ objectRef: { resource }, impersonatedUser }) => resource === "selfsubjectaccessreviews" && impersonatedUser)];
    return found.every((one) => one !== undefined) ? found : undefined;
  })()));
  expect(events[0]).toMatchObject({ level: "RequestResponse", stage: "ResponseComplete", user: { username: "system:admin" }, responseStatus: { code: 201 }, requestObject: { data: { a: "b" } }, annotations: { "authorization.k8s.io/decision": "allow" } });
  expect(events[0]!.responseObject!.metadata).not.toHaveProperty("managedFields");
  expect(events[1]).toMatchObject({ level: "Metadata", impersonatedUser: { username: "jane" } });
  expect(events[1]).not.toHaveProperty("requestObject");
});

test("who asks too much waits or is refused, and the others are served", async () => {
  expect(await raw("/metrics")).toContain('apiserver_flowcontrol_nominal_limit_seats{priority_level="global-default"} 3');
  const level = { apiVersion: "flowcontrol.apiserver.k8s.io/v1", kind: "PriorityLevelConfiguration", metadata: { name: "none" }, spec: { type: "Limited", limited: { nominalConcurrencyShares: 0, borrowingLimitPercent: 0, limitResponse: { type: "Reject" } } } };
  const schema = { apiVersion: "flowcontrol.apiserver.k8s.io/v1", kind: "FlowSchema", metadata: { name: "flood" }, spec: { matchingPrecedence: 500, priorityLevelConfiguration: { name: "none" }, rules: [{ subjects: [{ kind: "User", user: { name: "flood" } }], nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }] }] } };
  await host.apply(JSON.stringify(schema));
  await eventually("it dangles", async () => /^flood\s.*True\s*$/m.test(await host.kubectl("get", "flowschemas")));
  await host.apply(JSON.stringify(level));
  const tls = join(host.dataDir, "server/tls");
  const asked = `curl -ski --http2 -Z --parallel-max 50 --parallel-immediate --cert ${tls}/client-admin.crt --key ${tls}/client-admin.key -H 'Impersonate-User: flood' 'https://127.0.0.1:6443/api?x=[1-50]'`; // kubectl would try again and again
  const answers = await eventually("flood is refused, but for one at a time", async () => {
    const said = await host.sh(asked);
    return said.includes("HTTP/2 429") && said;
  });
  expect(answers).toMatch(/HTTP\/2 429[\s\S]*retry-after: 1\r\n[\s\S]*Too many requests, please try again later\.\n/i);
  expect(answers).toContain("HTTP/2 200");
  expect(await host.kubectl("get", "--raw", "/api", "--as=jane", "--as-group=system:authenticated")).toContain("APIVersions");
  expect(await raw("/metrics")).toMatch(/apiserver_flowcontrol_rejected_requests_total\{flow_schema="flood",priority_level="none",reason="concurrency-limit"\} [1-9]/);
  await host.kubectl("delete", "flowschema", "flood", "system-nodes");
});

test("of two levels with a seat each one is flooded: it queues and refuses its own, and nobody of the other waits or is refused", async () => {
  for (const name of ["flooded", "calm"]) {
    const limited = { nominalConcurrencyShares: 1, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: { type: "Queue", queuing: { queues: 1, handSize: 1, queueLengthLimit: 5 } } };
    const everything = [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true }];
    await host.apply(JSON.stringify({ apiVersion: "flowcontrol.apiserver.k8s.io/v1", kind: "PriorityLevelConfiguration", metadata: { name }, spec: { type: "Limited", limited } }));
    await host.apply(JSON.stringify({ apiVersion: "flowcontrol.apiserver.k8s.io/v1", kind: "FlowSchema", metadata: { name }, spec: { matchingPrecedence: 400, priorityLevelConfiguration: { name }, distinguisherMethod: { type: "ByUser" }, rules: [{ subjects: [{ kind: "User", user: { name } }], resourceRules: everything }] } }));
    await host.kubectl("create", "clusterrolebinding", name, "--clusterrole=cluster-admin", `--user=${name}`);
  }
  await eventually("both have seats", async () => {
    const told = await raw("/metrics");
    return ["flooded", "calm"].every((name) => told.includes(`apiserver_flowcontrol_nominal_limit_seats{priority_level="${name}"} 1\n`));
  });
  const tls = join(host.dataDir, "server/tls");
  const curl = `curl -sk --http2 --cert ${tls}/client-admin.crt --key ${tls}/client-admin.key -o /dev/null -w '%{http_code}\n'`;
  const answers = (text: string) => [...new Set(text.trim().split(/\s+/))].sort();
  const many = host.sh(`${curl} -Z --parallel-max 150 --parallel-immediate -H 'Impersonate-User: flooded' 'https://127.0.0.1:6443/apis/rbac.authorization.k8s.io/v1/clusterroles?x=[1-1000]'`);
  const few = host.sh(`${curl} -H 'Impersonate-User: calm' 'https://127.0.0.1:6443/apis/rbac.authorization.k8s.io/v1/clusterroles?x=[1-100]'`);
  expect([answers(await many), answers(await few)]).toEqual([["200", "429"], ["200"]]);
  const told = await raw("/metrics");
  expect(told).toMatch(/apiserver_flowcontrol_rejected_requests_total\{flow_schema="flooded",priority_level="flooded",reason="queue-full"\} [1-9]/);
  expect(told).not.toMatch(/apiserver_flowcontrol_rejected_requests_total\{flow_schema="calm"/);
  expect(told).toMatch(/apiserver_flowcontrol_request_queue_length_after_enqueue_sum\{flow_schema="calm",priority_level="calm"\} 100\n/); // each was the first of its queue
  await host.kubectl("delete", "flowschema", "flooded", "calm");
});

test("what the server tells of itself", async () => {
  expect(await raw("/readyz?verbose&exclude=etcd")).toMatch(/\[\+\]etcd excluded: ok[\s\S]*readyz check passed/);
  expect(await raw("/livez/etcd")).toBe("ok");
  expect(await raw("/flagz")).toMatch(/\napiserver flagz[\s\S]*disable-agent=true/);
  expect(await raw("/statusz")).toMatch(/\napiserver statusz[\s\S]*Binary version: 1\.36/);
  expect(await raw("/metrics/slis")).toContain('kubernetes_healthcheck{name="etcd",type="livez"} 1');
  for (const page of ["/metrics", "/metrics/slis"]) expect((await raw(page)).trimEnd().split("\n").filter((line) => !METRICS_LINE.test(line))).toEqual([]); // a reader of the format stops at what it does not know
  expect(await raw("/metrics")).toMatch(/apiserver_request_total\{[\s\S]*kubernetes_build_info\{[^}]*major="1",minor="36"[\s\S]*process_resident_memory_bytes \d/);
  expect(await host.kubectl("get", "componentstatuses")).toMatch(/^NAME\s+STATUS\s+MESSAGE\s+ERROR\n(.*\s+Healthy\s+ok\s*\n){3}$/);
  expect(await raw("/debug/api_priority_and_fairness/dump_priority_levels")).toMatch(/^PriorityLevelName,\s+ActiveQueues,[\s\S]*exempt,/);
  await expect(raw("/apis/batch/v1beta1/cronjobs")).rejects.toThrow("the server could not find the requested resource");
  expect(host.log()).toContain("traces cannot be exported");
});

test("a second server on this machine says why it cannot be, and takes nothing from the first", async () => {
  const before = readFileSync(host.kubeconfig, "utf8");
  const sameStore = await host.run([host.binary, "server", "--disable-agent"]);
  expect([sameStore.code, sameStore.stderr]).toEqual([1, expect.stringContaining("/server/db: another process has the store open; stop that first")]);
  const samePort = await host.run([host.binary, "server", "--disable-agent", "--data-dir", path("other")]);
  expect([samePort.code, samePort.stderr]).toEqual([1, expect.stringContaining("port 6443 on :: is in use by another program: stop that, or choose another port with --https-listen-port")]);
  expect(readFileSync(host.kubeconfig, "utf8")).toBe(before);
  expect(await raw("/readyz")).toBe("ok");
});
