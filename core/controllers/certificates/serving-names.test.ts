import { expect, test } from "vitest";
import type { Node } from "../../api/gen/core.v1.ts";
import { altNamesOf } from "../../pki/alt-names.ts";
import { serversAlone } from "../../pki/identities.ts";
import { foreignName } from "./serving-names.ts";

const node = (name: string, addresses: readonly string[], labels: Record<string, string> = {}): Node => ({ apiVersion: "v1", kind: "Node", metadata: { name, labels }, spec: {}, status: { addresses: addresses.map((address) => ({ type: "InternalIP", address })) } }) as unknown as Node;
const NAMES = { nodeName: "server-1", nodeIps: ["192.0.2.1"], serviceIps: ["10.43.0.1"], clusterDomain: "cluster.local", extra: ["cluster.example.com", "192.0.2.1"] };

test.each<[string, readonly string[], string | undefined]>([
  ["its name and addresses", ["n1", "192.0.2.11", "n1.example.com"], undefined],
  ["an address behind which other nodes are, too", ["198.51.100.1"], undefined],
  ["a name its Node has not", ["n3.example.com"], "n3.example.com"],
  ["the API server's within the cluster", ["kubernetes.default.svc"], "kubernetes.default.svc"],
  ["the same in capitals", ["Kubernetes.Default.svc"], "Kubernetes.Default.svc"],
  ["the same with a star", ["*.default.svc"], "*.default.svc"],
  ["the same with a dot behind", ["kubernetes.default.svc."], "kubernetes.default.svc."],
  ["the API server's Service", ["10.43.0.1"], "10.43.0.1"],
  ["the server's address", ["n1", "192.0.2.1"], "192.0.2.1"],
  ["a name the server has besides", ["cluster.example.com"], "cluster.example.com"],
  ["another server's address", ["192.0.2.2"], "192.0.2.2"],
  ["another node's name", ["n2"], "n2"],
  ["a webhook's Service", ["hook.team-a.svc"], "hook.team-a.svc"],
  ["the same in the cluster's domain", ["Hook.team-a.svc.cluster.local"], "Hook.team-a.svc.cluster.local"],
  ["a name that only ends like one", ["n1.svc", "n1.svcs.example.com"], undefined],
])("a node that says of itself what it likes: %s", (_, asked, expected) => {
  const everything = ["192.0.2.11", "n1.example.com", "198.51.100.1", "kubernetes.default.svc", "Kubernetes.Default.svc", "*.default.svc", "kubernetes.default.svc.", "10.43.0.1", "192.0.2.1", "cluster.example.com", "192.0.2.2", "n2", "hook.team-a.svc", "Hook.team-a.svc.cluster.local", "n1.svc", "n1.svcs.example.com"];
  const asking = node("n1", everything);
  const nodes = [node("server-1", ["192.0.2.1"], { "node-role.kubernetes.io/control-plane": "true" }), node("server-2", ["192.0.2.2"], { "node-role.kubernetes.io/control-plane": "true" }), node("n2", ["198.51.100.1"]), asking];
  expect(foreignName(altNamesOf(asked), asking, { nodes, servers: serversAlone(NAMES, { hasNode: true }) })).toBe(expected);
});

test("an agent beside a server without a node of its own is called as the server's machine is, and not as the API server", () => {
  const servers = serversAlone(NAMES, { hasNode: false });
  const beside = node("server-1", ["192.0.2.1", "10.43.0.1"]);
  expect(foreignName(altNamesOf(["server-1", "192.0.2.1"]), beside, { nodes: [beside], servers })).toBeUndefined();
  expect(foreignName(altNamesOf(["10.43.0.1"]), beside, { nodes: [beside], servers })).toBe("10.43.0.1");
  const impostor = node("kubernetes.default.svc", []);
  expect(foreignName(altNamesOf(["kubernetes.default.svc"]), impostor, { nodes: [impostor], servers })).toBe("kubernetes.default.svc");
});
