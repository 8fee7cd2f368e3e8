import { expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { type DnsFacts, parseResolvConf, podDns, searchProblem } from "./dns.ts";
import { managedHosts, podHostname } from "./hostname.ts";
import { sandboxConfig } from "./sandbox-config.ts";

const pod = (spec: Partial<Pod["spec"]> = {}): Pod => ({
  apiVersion: "v1", kind: "Pod", metadata: { name: "web-0", namespace: "shop", uid: "u1", resourceVersion: "", creationTimestamp: "", labels: { app: "web" } }, spec: { containers: [{ name: "a" }], ...spec },
});
const host = parseResolvConf("# mine\nnameserver 192.0.2.1\nsearch lan. .\noptions timeout:2 ndots:1 timeout:3\n");
const dns = (spec: Partial<Pod["spec"]>, more: Partial<DnsFacts> = {}) => podDns({ pod: pod(spec), host, nodeIps: ["10.0.0.1"], clusterDns: ["10.96.0.10"], clusterDomain: "cluster.local", ...more });

test("whose DNS a pod asks", () => {
  expect(host).toEqual({ servers: ["192.0.2.1"], searches: ["lan"], options: ["timeout:3", "ndots:1"] });
  const cluster = { servers: ["10.96.0.10"], searches: ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local", "lan"], options: ["ndots:5"] };
  expect(dns({}).config).toEqual(cluster);
  expect(dns({ hostNetwork: true }).config).toEqual(host);
  expect(dns({ hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" }).config).toEqual(cluster);
  expect(dns({ dnsPolicy: "Default" }, { host: undefined }).config).toEqual({ servers: ["127.0.0.1"], searches: ["."], options: [] });
  const own: Partial<Pod["spec"]> = { dnsPolicy: "None", dnsConfig: { nameservers: ["1.1.1.1"], searches: ["x"], options: [{ name: "ndots", value: "2" }, { name: "rotate" }] } };
  expect(dns(own).config).toEqual({ servers: ["1.1.1.1"], searches: ["x"], options: ["ndots:2", "rotate"] });
  expect(dns({}, { clusterDns: [] })).toMatchObject({ config: host, warnings: [{ about: "node", reason: "MissingClusterDNS", message: expect.stringMatching(/^kubelet does not have/) }, { about: "pod", reason: "MissingClusterDNS", message: expect.stringMatching(/^pod: "web-0_shop\(u1\)". kubelet does not have/) }] });
  expect(dns({ dnsConfig: { nameservers: ["1", "2", "3"] } })).toMatchObject({ config: { servers: ["10.96.0.10", "1", "2"] }, warnings: [{ reason: "DNSConfigForming" }] });
});

test.each<[string, string[], string, string | undefined]>([
  ["as many as fit", Array<string>(29).fill("a"), "cluster.local", undefined],
  ["more than fit beside the cluster's", Array<string>(30).fill("a"), "cluster.local", "Resolv.conf file '/r' contains search line consisting of more than 29 domains!"],
  ["where the cluster has none", Array<string>(32).fill("a"), "", undefined],
  ["one that is too long", ["a".repeat(254)], "cluster.local", `Resolv.conf file "/r" contains a search path which length is more than allowed 253 chars!`],
  ["too long together", Array<string>(10).fill("a".repeat(250)), "cluster.local", "Resolv.conf file '/r' contains search line which length is more than allowed 2048 chars!"],
])("search paths of the host: %s", (_, searches, clusterDomain, problem) => {
  expect(searchProblem({ servers: [], searches, options: [] }, { path: "/r", clusterDomain })).toBe(problem);
});

test("what a pod is called", () => {
  expect(podHostname(pod(), "cluster.local")).toEqual({ hostname: "web-0", domain: "", kernelName: "web-0" });
  const named = podHostname(pod({ hostname: "db", subdomain: "dbs", setHostnameAsFQDN: true }), "cluster.local");
  expect(named).toEqual({ hostname: "db", domain: "dbs.shop.svc.cluster.local", kernelName: "db.dbs.shop.svc.cluster.local" });
  const long = { ...pod(), metadata: { ...pod().metadata, name: `${"x".repeat(61)}.-y` } };
  expect(podHostname(long, "cluster.local").hostname).toBe("x".repeat(61)); // of 63 characters, without what may not be last
  expect(() => podHostname(pod({ subdomain: "x".repeat(60), setHostnameAsFQDN: true }), "cluster.local")).toThrow("is too long (64 characters is the max");
  expect(managedHosts(named, ["10.1.0.5", "fd00::5"], [{ ip: "1.2.3.4", hostnames: ["a", "b"] }])).toBe(
    "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n" +
    "10.1.0.5\tdb.dbs.shop.svc.cluster.local\tdb\nfd00::5\tdb.dbs.shop.svc.cluster.local\tdb\n\n# Entries added by HostAliases.\n1.2.3.4\ta\tb\n",
  );
});

test("what the runtime is told", () => {
  const config = sandboxConfig({
    os: "linux",
    pod: pod({ containers: [{ name: "a", ports: [{ containerPort: 80, hostPort: 8080 }, { containerPort: 81 }], securityContext: { privileged: true } }], shareProcessNamespace: true, securityContext: { fsGroup: 7, sysctls: [{ name: "net/ipv4/ip_forward", value: "1" }] } }),
    attempt: 1, dns: {}, hostname: { hostname: "web-0", domain: "", kernelName: "web-0" }, logDirectory: "/l", cgroupParent: "/kubepods/podu1", userNamespace: undefined,
  });
  expect(config).toMatchObject({
    metadata: { name: "web-0", uid: "u1", namespace: "shop", attempt: 1 }, hostname: "web-0", port_mappings: [{ host_port: 8080, container_port: 80, protocol: "TCP" }],
    labels: { app: "web", "io.kubernetes.pod.name": "web-0", "io.kubernetes.pod.namespace": "shop", "io.kubernetes.pod.uid": "u1" },
    linux: { cgroup_parent: "/kubepods/podu1", sysctls: { "net.ipv4.ip_forward": "1" }, security_context: { privileged: true, supplemental_groups: [7], namespace_options: { network: "POD", pid: "POD", ipc: "POD" } } },
  });
});
