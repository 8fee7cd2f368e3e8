import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { proxyEnvironment, runtimeEnvironment, straightToThisMachine } from "./proxy-environment.ts";

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

test("nobody goes through a proxy to this machine itself, in whichever letters that is named", () => {
  const straight = (none: string) => ({ NO_PROXY: none, no_proxy: none });
  expect(straightToThisMachine({ NO_PROXY: "a" })).toEqual({});
  expect(straightToThisMachine({ https_proxy: "http://proxy:3128" })).toEqual(straight("localhost,127.0.0.0/8,::1"));
  const env = { HTTP_PROXY: "http://proxy:3128", NO_PROXY: "a", no_proxy: "b" }, all = straight("a,localhost,127.0.0.0/8,::1");
  expect([straightToThisMachine(env), straightToThisMachine({ ...env, ...all })]).toEqual([all, all]);
});

test("the engine's own requests go by it, too", async () => {
  const server = createServer((_, response) => void response.end("straight")).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const { stdout } = await promisify(execFile)(process.execPath, ["-e", `
    const { straightToThisMachine } = await import(${JSON.stringify(import.meta.resolve("./proxy-environment.ts"))});
    Object.assign(process.env, straightToThisMachine(process.env));
    console.log(await (await fetch("http://127.0.0.1:${port}/")).text());`], { env: { PATH: process.env["PATH"], HTTP_PROXY: "http://192.0.2.1:9", no_proxy: "a" }, timeout: 60_000 });
  server.close();
  expect(stdout.trim()).toBe("straight");
});
