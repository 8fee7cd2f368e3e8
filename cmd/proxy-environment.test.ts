import { expect, test } from "vitest";
import { proxyEnvironment, runtimeEnvironment } from "./proxy-environment.ts";

const cluster = { clusterCidr: "10.42.0.0/16,fd42::/48", serviceCidr: "10.43.0.0/16", clusterDomain: "edge.local" };
const INSIDE = "10.42.0.0/16,fd42::/48,10.43.0.0/16,.svc,.edge.local";

test("what is in the cluster is reached without a proxy; where none is named, nothing is said", () => {
  expect(proxyEnvironment({ NO_PROXY: "a" }, cluster)).toEqual({});
  expect(proxyEnvironment({ HTTPS_PROXY: "http://proxy:3128", NO_PROXY: "192.168.0.0/16,example.org", PATH: "/bin" }, cluster)).toEqual({ HTTPS_PROXY: "http://proxy:3128", NO_PROXY: `192.168.0.0/16,example.org,${INSIDE}` });
  expect(proxyEnvironment({ http_proxy: "http://a", https_proxy: "http://b" }, cluster)).toEqual({ HTTP_PROXY: "http://a", HTTPS_PROXY: "http://b", NO_PROXY: INSIDE });
});

test("containerd has proxies of its own, or none where the node has", () => {
  const env = { HTTPS_PROXY: "http://node", NO_PROXY: "a", CONTAINERD_HTTPS_PROXY: "http://images", CONTAINERD_NO_PROXY: "b" };
  expect(runtimeEnvironment(env, cluster)).toEqual({ HTTPS_PROXY: "http://images", NO_PROXY: `b,${INSIDE}` });
  expect(runtimeEnvironment({ https_proxy: "http://node" }, cluster)).toEqual({ HTTPS_PROXY: "http://node", NO_PROXY: INSIDE });
  expect(runtimeEnvironment({ HTTPS_PROXY: "http://node", CONTAINERD_HTTPS_PROXY: "" }, cluster)).toEqual({});
});
