import { expect, test } from "vitest";
import { apiServer } from "../../../test/api-server.ts";
import type { AdmissionRequest } from "../../admission/plugin.ts";
import type { TokenIssuer } from "../../authn/token-issuer.ts";
import { nodeProxyHandlers } from "./node-proxy.ts";

test("whoever asks for a token owns its lifetime, the default one too", async () => {
  await using api = await apiServer({ special: { tokens: { tokenRequest: (_: unknown, request: unknown) => Promise.resolve(request) } as unknown as TokenIssuer } });
  for (const body of [{}, { spec: { audiences: ["a"] } }]) {
    const { body: told } = await api.ask("POST", "/api/v1/namespaces/a/serviceaccounts/s/token", { body });
    expect([told.spec.expirationSeconds, told.metadata.managedFields]).toEqual([3600, [expect.objectContaining({ fieldsV1: { "f:spec": expect.objectContaining({ "f:expirationSeconds": {} }) }, subresource: "token" })]]);
  }
});

test("the parts of the control plane were never created, and do not say so", async () => {
  await using api = await apiServer({ special: { components: [{ name: "etcd-0", check: () => undefined }] } });
  expect((await api.ask("GET", "/api/v1/componentstatuses/etcd-0")).body.metadata).toEqual({ name: "etcd-0" });
});

test("of a pod whose node is not there, the node is not found: by the name of the request's resource", async () => {
  await using api = await apiServer({ special: { connections: nodeProxyHandlers({} as never) } });
  await api.ask("POST", "/api/v1/namespaces/a/pods", { body: { metadata: { name: "p" }, spec: { nodeName: "gone", containers: [{ name: "c", image: "i" }] } } });
  const told = async (path: string) => (await api.ask("GET", path)).body.message as string;
  expect([await told("/api/v1/namespaces/a/pods/p/log"), await told("/api/v1/nodes/gone/proxy/")]).toEqual(['pods "gone" not found', 'nodes "gone" not found']);
});

test("what admission makes of a connection's options is what is asked of the node; patches are noted, and what nobody gave is not told but for the command", async () => {
  const told: unknown[] = [];
  const admit = ({ subresource, object }: AdmissionRequest): void => {
    if (!["exec", "proxy"].includes(subresource)) return;
    told.push(structuredClone(object));
    if (subresource === "exec") Object.assign(object!, { container: "other" });
  };
  await using api = await apiServer({ admit, special: { connections: nodeProxyHandlers({} as never) } });
  await api.ask("POST", "/api/v1/namespaces/a/pods", { body: { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i" }] } } });
  expect((await api.ask("POST", "/api/v1/namespaces/a/pods/p/exec", { query: { stdin: "1" } })).body.message).toBe("container other is not valid for pod p");
  await api.ask("PUT", "/api/v1/namespaces/a/pods/p/proxy");
  expect(told).toEqual([{ kind: "PodExecOptions", apiVersion: "v1", stdin: true, command: null }, { kind: "PodProxyOptions", apiVersion: "v1" }]);
});

test("a node without an address cannot be asked, and that is told as it is", async () => {
  await using api = await apiServer({ special: { connections: nodeProxyHandlers({} as never) } });
  await api.ask("POST", "/api/v1/nodes", { body: { metadata: { name: "n" } } });
  await api.ask("POST", "/api/v1/namespaces/a/pods", { body: { metadata: { name: "p" }, spec: { nodeName: "n", containers: [{ name: "c", image: "i" }] } } });
  for (const path of ["/api/v1/namespaces/a/pods/p/log", "/api/v1/nodes/n/proxy/"])
    expect((await api.ask("GET", path)).body).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "no preferred addresses found; known addresses: []", code: 500 });
});

test("what only the system says of an object is not taken from who sends a review", async () => {
  await using api = await apiServer();
  const metadata = { uid: "5", creationTimestamp: "2020-01-01T00:00:00Z", deletionTimestamp: "2020-01-01T00:00:00Z", deletionGracePeriodSeconds: 3, selfLink: "/x", labels: { a: "b" } };
  const { body } = await api.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", { body: { metadata, spec: { nonResourceAttributes: { path: "/", verb: "get" } } } });
  expect(Object.keys(body.metadata)).toEqual(["labels", "managedFields"]);
});

test.each(["GET", "POST"])("%s of a proxy by its old path leads nowhere", async (method) => {
  await using api = await apiServer();
  for (const path of ["/api/v1/proxy/namespaces/a/pods/p", "/api/v1/proxy/nodes/n", "/api/v1/proxy/namespaces/a/configmaps/c"])
    expect([(await api.ask(method, path, { body: {} })).code, path]).toEqual([404, path]);
});
