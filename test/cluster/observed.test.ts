/** Seen from outside, on the compiled binary: what pods write wherever they write it, whom a proxy reaches, and a Deployment that grows with its use. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, Host, switchDown } from "./host.ts";

let host: Host;

beforeAll(async () => {
  host = await Host.withBusybox("observed", "172.30.0.26");
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await switchDown();
});

const container = (name: string, command: string, more = "") => `{name: ${name}, image: "busybox:1", command: [sh, -c, ${JSON.stringify(command)}]${more}}`;
const deployment = (name: string, replicas: number, command: string, more = "") =>
  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: ${name}}, spec: {replicas: ${replicas}, selector: {matchLabels: {app: ${name}}}, template: {metadata: {labels: {app: ${name}}}, spec: {terminationGracePeriodSeconds: 1, containers: [${container("c", command, more)}]}}}}`;

test("a log file may be /dev/stdout; what one container writes to a shared volume another one can tell; an agent on the node reads them all", async () => {
  const mounted = ", volumeMounts: [{name: v, mountPath: /v}]";
  await host.apply(`{apiVersion: v1, kind: Pod, metadata: {name: writer}, spec: {terminationGracePeriodSeconds: 1, volumes: [{name: v, emptyDir: {}}], containers: [
    ${container("app", "ln -s /dev/stdout /tmp/log; echo to the log > /tmp/log; echo to the file > /v/log; sleep 1000", mounted)}, ${container("teller", "tail -n +1 -F /v/log 2>/dev/null", mounted)}]}}`);
  await host.apply(`{apiVersion: v1, kind: Pod, metadata: {name: agent}, spec: {terminationGracePeriodSeconds: 1, volumes: [{name: logs, hostPath: {path: /var/log/pods, type: Directory}}], containers: [${container("c", "sleep 1000", ", volumeMounts: [{name: logs, mountPath: /logs, readOnly: true}]")}]}}`);
  await host.kubectl("wait", "pod/writer", "pod/agent", "--for=condition=Ready", "--timeout=300s");
  await eventually("each tells its own", async () => (await host.kubectl("logs", "writer", "-c", "app")) === "to the log\n" && (await host.kubectl("logs", "writer", "-c", "teller")) === "to the file\n");
  expect(await host.kubectl("exec", "agent", "--", "sh", "-c", "cat /logs/default_writer_*/app/0.log")).toMatch(/^\d{4}-\S+Z stdout F to the log\n$/);
});

test("the API server's proxy to a Service reaches each of its pods", async () => {
  await host.apply(deployment("who", 2, "hostname > /index.html; httpd -f -p 80 -h /"));
  await host.apply(`{apiVersion: v1, kind: Service, metadata: {name: who}, spec: {selector: {app: who}, ports: [{port: 80}]}}`);
  await host.kubectl("rollout", "status", "deployment/who", "--timeout=300s");
  const seen = new Set<string>();
  await eventually("both have answered", async () => seen.add(await host.kubectl("get", "--raw", "/api/v1/namespaces/default/services/who/proxy/")).size === 2);
});

test("a Deployment grows with what its pods use, as the metrics API tells it", async () => {
  await host.apply(deployment("busy", 1, "while :; do :; done", ", resources: {requests: {cpu: 1m}, limits: {cpu: 100m}}"));
  await host.kubectl("autoscale", "deployment", "busy", "--min=1", "--max=2", "--cpu=50%");
  await eventually("it has grown", async () => (await host.kubectl("get", "deployment", "busy", "-o", "jsonpath={.spec.replicas}")) === "2");
  expect(await host.kubectl("get", "events", "--field-selector", "reason=SuccessfulRescale", "-o", "jsonpath={.items[0].message}")).toBe("New size: 2; reason: cpu resource utilization (percentage of request) above target");
  await eventually("it is told that there may be no more", async () => (await host.kubectl("get", "hpa", "busy", "-o", `jsonpath={.status.conditions[?(@.type=="ScalingLimited")].reason}`)) === "TooManyReplicas");
  expect(await host.kubectl("top", "pods", "-l", "app=busy")).toMatch(/^NAME\s+CPU\(cores\)\s+MEMORY\(bytes\)/);
});
