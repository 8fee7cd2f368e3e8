/** A node the server cannot reach: whatever the server begins is dropped on its way. All that needs the node works nevertheless, through the connection the agent made. */
import { cpSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemRandom } from "../../core/lifecycle/random.ts";
import { altNamesOf } from "../../core/pki/alt-names.ts";
import { authority, generateKey, keyPem, selfSign } from "../../core/pki/authority.ts";
import { spkiOf } from "../../core/pki/signature.ts";
import { eventually, Host, switchDown } from "./host.ts";

const SERVER = "https://172.30.0.31:6443";
let boss: Host;
let far: Host;

beforeAll(async () => {
  boss = await Host.up("near", "172.30.0.31");
  far = await Host.up("far", "172.30.0.32");
  await boss.start();
  await boss.nodeReady();
  await far.startAgent("--server", SERVER, "--token", (await boss.ok([boss.binary, "token", "create"])).trim());
  await boss.nodeReady("far");
  await far.ok([join(far.dataDir, "agent/current/bin/nft"), `add table inet wall; add chain inet wall in { type filter hook input priority 0; }; add rule inet wall in ip saddr ${boss.address} tcp flags & (syn | ack) == syn drop; add rule inet wall in ip saddr ${boss.address} meta l4proto != tcp drop`]);
  await far.importImage("busybox");
  await boss.apply(WEB);
  await boss.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=300s");
});
afterAll(async () => {
  await Promise.all([boss, far].map((host) => host?.[Symbol.asyncDispose]()));
  await switchDown();
});

const WEB = `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeSelector: {kubernetes.io/hostname: far}
  terminationGracePeriodSeconds: 0
  containers:
  - name: httpd
    image: busybox:1
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "echo serving; echo hello from afar > /www/index.html; exec httpd -f -p 8080 -h /www"]
    ports: [{name: http, containerPort: 8080}]
    readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 1}
    volumeMounts: [{name: www, mountPath: /www}]
  volumes: [{name: www, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}
`;

const podIp = async (): Promise<string> => (await boss.kubectl("get", "pod", "web", "-o", "jsonpath={.status.podIP}")).trim();

test("there is no way from the server to the node or its pods", async () => {
  for (const url of [`https://${far.address}:10250/healthz`, `http://${await podIp()}:8080/`]) expect((await boss.run(["curl", "-sk", "-m", "1.5", url])).code).toBe(28);
  expect((await far.run(["curl", "-sk", "-m", "15", `${SERVER}/healthz`])).stdout).toBe("ok");
});

test("logs, as they are and as they come", async () => {
  expect(await boss.kubectl("logs", "web")).toBe("serving\n");
  expect(await boss.hears("logs", "-f", "web")).toBe("serving\n");
});

test("exec with input, output and exit codes, by WebSocket and by SPDY", async () => {
  expect(await boss.ok(["env", "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", boss.binary, "kubectl", "exec", "-i", "web", "--", "sh", "-c", "cat; hostname"], { input: "typed\n" })).toBe("typed\nweb\n");
  expect(await boss.ok([boss.binary, "kubectl", "exec", "-i", "web", "--", "sh", "-c", "cat; hostname"], { input: "typed\n" })).toBe("typed\nweb\n");
  expect((await boss.run([boss.binary, "kubectl", "exec", "web", "--", "sh", "-c", "exit 7"])).code).toBe(7);
});

test("files are copied in and out", async () => {
  await boss.sh(`head -c 30000000 /dev/urandom > ${boss.directory}/in`);
  await boss.kubectl("cp", `${boss.directory}/in`, "web:/tmp/copied");
  await boss.kubectl("cp", "web:/tmp/copied", `${boss.directory}/out`);
  await boss.sh(`cmp ${boss.directory}/in ${boss.directory}/out`);
});

test("a shell answers while files are copied, and while nobody reads what another shell says", async () => {
  const script = `
    ${boss.binary} kubectl exec web -- cat /dev/zero | sleep 100000 & stuck=$!
    (while [ -e ${boss.directory}/go ]; do ${boss.binary} kubectl exec web -- cat /tmp/copied > /dev/null; done) & copies=$!
    sleep 2
    for i in 1 2 3; do s=$(date +%s%N); ${boss.binary} kubectl exec web -- true; e=$(date +%s%N); echo $(( (e - s) / 1000000 )); done
    rm ${boss.directory}/go; kill $stuck 2> /dev/null; wait $copies`;
  const times = (await boss.sh(`touch ${boss.directory}/go; ${script}`)).trim().split("\n").map(Number);
  console.log(`exec while two others push all they can: ${times.join(", ")} ms`);
  expect(times).toHaveLength(3); // though nobody ever reads the other
});

test("a port is forwarded", async () => {
  expect(await boss.sh(`${boss.binary} kubectl port-forward web 18080:8080 >/dev/null & pid=$!; for i in $(seq 600); do curl -sf -m 10 http://127.0.0.1:18080/ && break; sleep 0.1; done; kill $pid`)).toBe("hello from afar\n");
});

test("figures of nodes and pods", async () => {
  await eventually("top knows the pod", async () => /web +\d+m +\d+Mi/.test(await boss.kubectl("top", "pod", "web")));
  await eventually("top knows the node", async () => /far +\d+m/.test(await boss.kubectl("top", "node", "far")));
});

test("proxies to the node, its pods and their Services", async () => {
  expect(await boss.kubectl("get", "--raw", "/api/v1/nodes/far/proxy/healthz")).toBe("ok");
  expect(await boss.kubectl("get", "--raw", "/api/v1/namespaces/default/pods/web:8080/proxy/")).toBe("hello from afar\n");
  expect(await boss.kubectl("get", "--raw", "/api/v1/namespaces/default/services/web:80/proxy/")).toBe("hello from afar\n");
});

/** Runs in the pod, by the Bun and with the libraries of the machine under it: adds a label to what is made, and refuses what is called "bad". */
const WEBHOOK = `
const [key, cert] = [process.env.KEY, process.env.CERT];
Bun.serve({ port: 8443, tls: { key, cert }, async fetch(request) {
  const { request: { uid, object } } = await request.json();
  const allowed = object.metadata.name !== "bad";
  const patch = btoa(JSON.stringify([{ op: "add", path: "/metadata/labels", value: { seen: "afar" } }]));
  return Response.json({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: allowed ? { uid, allowed, patchType: "JSONPatch", patch } : { uid, allowed, status: { message: "not from here" } } });
} });
console.log("listening");
`;

test("an admission webhook in a pod of the node", async () => {
  const validity = { notBeforeMs: 0, notAfterMs: Date.now() + 3_600_000 };
  const [caKey, key] = [await generateKey(), await generateKey()];
  const ca = authority(selfSign("hook", { ...validity, key: caKey, random: systemRandom }), keyPem(caKey), systemRandom);
  const cert = ca.issue({ ...validity, subject: { commonName: "hook", organizations: [] }, spki: spkiOf(key), usages: ["digital signature", "server auth"], altNames: altNamesOf(["hook.default.svc"]) });
  writeFileSync(join(far.directory, "webhook.ts"), WEBHOOK);
  cpSync(realpathSync(process.execPath), join(far.directory, "bun"));
  const env = JSON.stringify([{ name: "KEY", value: keyPem(key) }, { name: "CERT", value: cert }]);
  await boss.apply(`
apiVersion: v1
kind: Pod
metadata: {name: hook, labels: {app: hook}}
spec:
  nodeSelector: {kubernetes.io/hostname: far}
  terminationGracePeriodSeconds: 0
  containers:
  - name: hook
    image: busybox:1
    imagePullPolicy: IfNotPresent
    command: [chroot, /machine, ${join(far.directory, "bun")}, ${join(far.directory, "webhook.ts")}]
    env: ${env}
    readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
    volumeMounts: [{name: machine, mountPath: /machine}]
  volumes: [{name: machine, hostPath: {path: /}}]
---
apiVersion: v1
kind: Service
metadata: {name: hook}
spec: {selector: {app: hook}, ports: [{port: 443, targetPort: 8443}]}
`);
  await boss.kubectl("wait", "--for=condition=Ready", "pod/hook", "--timeout=300s");
  await boss.apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: hook}
webhooks:
- name: hook.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 5
  clientConfig: {service: {name: hook, namespace: default, path: /}, caBundle: ${Buffer.from(ca.bundlePem).toString("base64")}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}
`);
  const label = await eventually("the webhook is called", async () => {
    await boss.kubectl("delete", "configmap", "good", "--ignore-not-found");
    await boss.kubectl("create", "configmap", "good");
    return (await boss.kubectl("get", "configmap", "good", "-o", "jsonpath={.metadata.labels.seen}")).trim() || undefined;
  });
  expect(label).toBe("afar");
  expect((await boss.run([boss.binary, "kubectl", "create", "configmap", "bad"])).stderr).toContain('admission webhook "hook.example.com" denied the request: not from here');
});

test("the agent dials nothing for the server that is not its pods' or its kubelet's", async () => {
  await far.sh("setsid python3 -m http.server 9999 > /dev/null 2>&1 & sleep 0.5");
  const { code, stderr } = await boss.run(["timeout", "120", boss.binary, "kubectl", "get", "--raw", "/api/v1/nodes/far:9999/proxy/"]);
  expect(code).not.toBe(0);
  expect(stderr).toContain(`not allowed by the node's tunnel: ${far.address}:9999`);
  expect(far.log()).toContain("the server asked for a connection this node does not allow");
});

test("after the server's restart, and after the agent's, it is all there again", async () => {
  for (const host of [boss, far]) {
    await host.kill("KILL");
    if (host === boss) await boss.start();
    else await far.startAgent("--server", SERVER);
    const startMs = performance.now();
    await eventually("logs can be read", async () => (await boss.kubectl("logs", "web", "--request-timeout=20s")) === "serving\n");
    console.log(`logs through the tunnel ${((performance.now() - startMs) / 1000).toFixed(1)} s after the restart of ${host.name}`);
  }
});

test("a Node that is deleted loses its tunnel; it gets one again once the machine has registered anew", async () => {
  await boss.kubectl("delete", "node", "far");
  await eventually("the tunnel is closed", async () => boss.log().includes("the node was deleted"));
  await boss.nodeReady("far");
  await eventually("and can be reached", async () => (await boss.kubectl("get", "--raw", "/api/v1/nodes/far/proxy/healthz")) === "ok");
});
