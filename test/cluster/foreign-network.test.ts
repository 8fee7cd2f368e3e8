/** Somebody else's pod network, installed as theirs are: a configuration in /etc/cni/net.d, plug-ins in /opt/cni/bin. Services and names work over it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, Host, switchDown } from "./host.ts";

const CONFLIST = {
  cniVersion: "1.0.0", name: "theirs",
  plugins: [
    { type: "their-bridge", bridge: "theirs0", isGateway: true, ipMasq: true, ipam: { type: "host-local", ranges: [[{ subnet: "10.42.77.0/24" }]], routes: [{ dst: "0.0.0.0/0" }] } },
    { type: "portmap", capabilities: { portMappings: true }, snat: true, backend: "nftables" },
  ],
};
let host: Host;

beforeAll(async () => {
  host = await Host.up("foreign", "172.30.0.25");
  await host.start("--disable", "network,metrics-server");
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await switchDown();
});

const ready = async () => await host.kubectl("get", "node", host.name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message}`);

test("without a network the node is not Ready, and says why; with one it is", async () => {
  await eventually("the node says what it lacks", async () => /^False .*container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized/.test(await ready()));
  await host.sh(`mkdir -p /opt/cni/bin && cp ${host.dataDir}/agent/current/cni/bridge /opt/cni/bin/their-bridge`);
  await host.sh(`echo '${JSON.stringify(CONFLIST)}' > /etc/cni/net.d/10-theirs.conflist`);
  await eventually("the node is Ready", async () => (await ready()).startsWith("True "));
});

test("without metrics there is no API of them, and no APIService that is in the way of another's", async () => {
  expect(await host.kubectl("get", "apiservices", "-o", "name")).not.toContain("metrics.k8s.io");
  expect((await host.run([host.binary, "kubectl", "top", "nodes"])).stderr).toContain("Metrics API not available");
});

test("pods have its addresses, Services reach them, names are answered, host ports are forwarded", async () => {
  await host.importImage("busybox");
  await host.apply(`{apiVersion: v1, kind: Pod, metadata: {name: web, labels: {app: web}}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: "busybox:1", command: [sh, -c, "echo theirs > /index.html; httpd -f -p 80 -h /"], ports: [{containerPort: 80, hostPort: 8088}]}]}}`);
  await host.apply(`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}`);
  await host.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=300s");
  expect(await host.kubectl("get", "pod", "web", "-o", "jsonpath={.status.podIP}")).toMatch(/^10\.42\.77\./);
  expect(await host.kubectl("exec", "web", "--", "ip", "-o", "addr", "show", "lo")).toContain("127.0.0.1/8");
  await eventually("the Service answers by its name", async () => (await host.kubectl("exec", "web", "--", "wget", "-q", "-O-", "-T", "5", "http://web/")) === "theirs\n");
  expect(await host.sh(`curl -sf -m 15 http://$(coracle=${host.binary}; $coracle kubectl get service web -o 'jsonpath={.spec.clusterIP}')/`)).toBe("theirs\n");
  expect(await host.sh(`curl -sf -m 15 http://${host.address}:8088/`)).toBe("theirs\n");
});
