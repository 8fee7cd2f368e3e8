/** What a user does on the first day, on the compiled binary: start, apply an application, look at it in every way, pull the plug. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, Host, switchDown } from "./host.ts";

const APPLICATION = readFileSync(join(import.meta.dirname, "application.yaml"), "utf8");
let host: Host;

beforeAll(async () => {
  host = await Host.up("skeleton", "172.30.0.11");
  await host.start();
  await host.nodeReady();
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await switchDown();
});

const json = async (...args: string[]) => JSON.parse(await host.kubectl("get", ...args, "-o", "json"));
const podOf = async (app: string) => (await host.kubectl("get", "pods", "-l", `app=${app}`, "-o", "jsonpath={.items[0].metadata.name}")).trim();

test("nothing is served to strangers but health and version", async () => {
  const status = async (path: string) => (await host.sh(`curl -sk -o /dev/null -w '%{http_code}' https://127.0.0.1:6443${path}`)).trim();
  expect(await Promise.all(["/healthz", "/livez", "/readyz", "/version"].map(status))).toEqual(["200", "200", "200", "200"]);
  expect(await Promise.all(["/api", "/api/v1/secrets", "/metrics"].map(status))).toEqual(["403", "403", "403"]);
  expect((await host.sh("curl -sk -H 'authorization: Bearer nope' https://127.0.0.1:6443/api")).trim()).toContain('"code": 401');
  expect((await host.sh(`stat -c %a ${host.kubeconfig}`)).trim()).toBe("600");
});

test("images come from archives", async () => {
  for (const image of ["busybox", "redis"]) {
    expect(await host.importImage(image)).toContain(`imported docker.io/library/${image}:`);
  }
});

test("an application is applied and becomes ready", async () => {
  await host.apply(APPLICATION);
  await host.kubectl("rollout", "status", "deployment/web", "--timeout=300s");
  await host.kubectl("rollout", "status", "deployment/backend", "--timeout=300s");
  expect(await host.apply(APPLICATION)).not.toMatch(/configured|created/);
});

test("volumes and variables carry the ConfigMap, the Secret and the pod's own name", async () => {
  const pod = await podOf("web");
  expect(await host.kubectl("exec", pod, "--", "sh", "-c", "cat /www/index.html /www/who /www/secret")).toBe(`welcome to the shed\nhello from ${pod}\nopen-sesame`);
});

test("the Service answers by cluster IP, by name from a pod, and by node port from the host", async () => {
  const { spec } = await json("service", "web");
  expect(await host.sh(`curl -sf -m 15 http://${spec.clusterIP}/`)).toBe("welcome to the shed\n");
  expect(await host.sh(`curl -sf -m 15 http://${host.address}:30080/`)).toBe("welcome to the shed\n");
  const pod = await podOf("web");
  expect(await host.kubectl("exec", pod, "--", "wget", "-q", "-O-", "-T", "15", "http://web/")).toBe("welcome to the shed\n");
  expect(await host.kubectl("exec", pod, "--", "wget", "-q", "-O-", "-T", "15", "http://web.default.svc.cluster.local/")).toBe("welcome to the shed\n");
  const seen = new Set<string>();
  for (let i = 0; i < 40 && seen.size < 3; i++) seen.add(await host.sh(`curl -sf -m 15 http://${spec.clusterIP}/who`));
  expect(seen.size).toBe(3);
});

test("the backend keeps what it is told", async () => {
  const pod = await podOf("backend");
  const redis = (...words: string[]) => host.kubectl("exec", pod, "--", "redis-cli", "--no-auth-warning", "-a", "open-sesame", "-h", "backend", ...words);
  expect(await redis("set", "door", "closed")).toBe("OK\n");
  expect(await redis("get", "door")).toBe("closed\n");
});

test("kubectl looks at it as on any Kubernetes", async () => {
  const pod = await podOf("web");
  expect(await host.kubectl("get", "deployments")).toMatch(/^NAME\s+READY\s+UP-TO-DATE\s+AVAILABLE\s+AGE\nbackend\s+1\/1\s+1\s+1\s+\S+\nweb\s+3\/3\s+3\s+3\s+\S+\n$/);
  expect(await host.kubectl("describe", "pod", pod)).toMatch(/Status:\s+Running[\s\S]*httpd:[\s\S]*State:\s+Running[\s\S]*Events:[\s\S]*Scheduled[\s\S]*Started/);
  expect(await host.kubectl("explain", "deployment.spec.replicas")).toContain("Number of desired pods");
  expect(await host.kubectl("logs", pod)).toContain("serving\n");
  expect(await host.kubectl("logs", "-l", "app=web", "--tail=1", "--prefix")).toContain(`[pod/${pod}/httpd]`);
  expect(await host.kubectl("version")).toContain("Server Version: v1.36");
  expect(await host.kubectl("api-resources", "--api-group=apps")).toContain("deployments");
  expect(await host.kubectl("auth", "can-i", "list", "secrets", "--as=system:serviceaccount:default:default").catch((error: Error) => error.message)).toContain("no");
});

test("exec passes on input, output and exit codes", async () => {
  const pod = await podOf("web");
  expect(await host.ok([host.binary, "kubectl", "exec", "-i", pod, "--", "sh", "-c", "cat; echo done >&2"], { input: "a line\n" })).toBe("a line\n");
  expect((await host.run([host.binary, "kubectl", "exec", pod, "--", "sh", "-c", "exit 7"])).code).toBe(7);
});

test("files are copied in and out", async () => {
  const pod = await podOf("web");
  await host.sh(`head -c 3000000 /dev/urandom > ${host.directory}/in`);
  await host.kubectl("cp", `${host.directory}/in`, `${pod}:/tmp/copied`);
  await host.kubectl("cp", `${pod}:/tmp/copied`, `${host.directory}/out`);
  await host.sh(`cmp ${host.directory}/in ${host.directory}/out`);
});

test("a port is forwarded", async () => {
  const pod = await podOf("web");
  expect(await host.sh(`${host.binary} kubectl port-forward ${pod} 18080:8080 >/dev/null & pid=$!; for i in $(seq 600); do curl -sf -m 10 http://127.0.0.1:18080/ && break; sleep 0.1; done; kill $pid`)).toBe("welcome to the shed\n");
});

test("scaling, and a rollout that is undone", async () => {
  await host.kubectl("scale", "deployment/web", "--replicas=5");
  await host.kubectl("rollout", "status", "deployment/web", "--timeout=300s");
  await host.kubectl("scale", "deployment/web", "--replicas=2");
  await eventually("two pods are left", async () => (await json("pods", "-l", "app=web")).items.length === 2);
  await host.kubectl("set", "env", "deployment/web", "COLOUR=green");
  await host.kubectl("rollout", "status", "deployment/web", "--timeout=300s");
  expect(await host.kubectl("rollout", "history", "deployment/web")).toMatch(/1\s.*\n2\s/);
  await host.kubectl("rollout", "undo", "deployment/web");
  await host.kubectl("rollout", "status", "deployment/web", "--timeout=300s");
  expect((await json("deployment", "web")).spec.template.spec.containers[0].env).toBeUndefined();
});

test("a watch tells what happens", async () => {
  const told = `${host.directory}/watch`;
  const watching = host.sh(`timeout 60 ${host.binary} kubectl get configmaps -w --no-headers --output-watch-events > ${told} & echo $! > ${told}.pid; wait $! || true`);
  await eventually("the watch has begun", async () => (await host.sh(`cat ${told}`)).includes("kube-root-ca.crt"));
  await host.kubectl("create", "configmap", "seen");
  await host.kubectl("delete", "configmap", "seen");
  await eventually("both are told", async () => /ADDED\s+seen\s[\s\S]*DELETED\s+seen\s/.test(await host.sh(`cat ${told}`)));
  await host.sh(`kill $(cat ${told}.pid)`);
  await watching;
});

test("manifests in the server's directory are applied, changed, and given up", async () => {
  const file = join(host.dataDir, "server", "manifests", "shed.yaml");
  const map = (name: string, value: string): string => `---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, namespace: shed}\ndata: {value: "${value}"}\n`;
  const values = () => host.kubectl("-n", "shed", "get", "configmaps", "-l", "!none", "-o", "jsonpath={range .items[*]}{.metadata.name}={.data.value} {end}");
  await Bun.write(file, `${map("gate", "open")}${map("lamp", "on")}---\n{apiVersion: v1, kind: Namespace, metadata: {name: shed}}\n`);
  await eventually("both are made, after their Namespace", async () => /gate=open .*lamp=on/.test(await values()));
  await Bun.write(file, map("gate", "closed"));
  await eventually("one is changed, the other and the Namespace go", async () => /AppliedManifest.*shed.yaml: 1 applied, 2 deleted/.test(await host.kubectl("-n", "kube-system", "get", "events")));
  await Bun.write(file, "# no more\n");
  await eventually("nothing is asked for any more", async () => (await host.kubectl("-n", "kube-system", "get", "configmap", "coracle-manifests", "-o", "jsonpath={.data.shed\\.yaml}")) === "");
});

test("a restart of coracle leaves containers alone", async () => {
  const started = async () => (await json("pods")).items.flatMap(({ status }: { status: { containerStatuses: { containerID: string; state: { running?: { startedAt: string } } }[] } }) => status.containerStatuses.map(({ containerID, state }) => `${containerID} ${state.running?.startedAt}`)).sort();
  await eventually("no pod of the rollout is left", async () => (await json("pods")).items.every(({ metadata }: { metadata: { deletionTimestamp?: string } }) => metadata.deletionTimestamp === undefined));
  const before = await started();
  await host.kill("TERM");
  await host.start();
  await eventually("the server answers again", async () => (await host.kubectl("get", "--raw", "/readyz")) === "ok");
  await Bun.sleep(3000);
  expect(await started()).toEqual(before);
});

test("the plug is pulled: everything is killed, and everything comes back", async () => {
  const names = async () => (await json("pods")).items.map(({ metadata }: { metadata: { name: string } }) => metadata.name).sort();
  const before = await names();
  await host.sh(`for p in /proc/[0-9]*; do n=$(cat $p/comm 2>/dev/null); case $n in coracle|containerd*|httpd|busybox|redis-server|pause|sh) [ $\{p#/proc/} != $$ ] && [ $\{p#/proc/} != 1 ] && kill -9 $\{p#/proc/} 2>/dev/null;; esac; done; true`.replaceAll("$\\{", "${"));
  await host.start();
  await eventually("the application answers", async () => (await host.sh(`curl -sf -m 2 http://${host.address}:30080/`)) === "welcome to the shed\n");
  expect(await names()).toEqual(before);
  await host.kubectl("rollout", "status", "deployment/web", "--timeout=300s");
  await host.kubectl("rollout", "status", "deployment/backend", "--timeout=300s");
});

test("a namespace goes with all that is in it", async () => {
  await host.kubectl("create", "namespace", "short-lived");
  await host.kubectl("-n", "short-lived", "create", "deployment", "d", "--image=busybox:1", "--", "sh", "-c", "trap 'exit 0' TERM; while true; do sleep 1; done");
  await host.kubectl("-n", "short-lived", "rollout", "status", "deployment/d", "--timeout=300s");
  await host.kubectl("delete", "namespace", "short-lived", "--timeout=300s");
  expect((await host.run([host.binary, "kubectl", "get", "namespace", "short-lived"])).stderr).toContain('namespaces "short-lived" not found');
});

test("what is deleted is gone, and its containers with it", async () => {
  await host.kubectl("delete", "deployment,service", "web", "backend", "--timeout=300s");
  await eventually("no pods are left", async () => (await json("pods")).items.length === 0);
  await eventually("no containers are left", async () => (await host.ok([host.binary, "crictl", "ps", "-a", "-q"])).trim() === "");
});
