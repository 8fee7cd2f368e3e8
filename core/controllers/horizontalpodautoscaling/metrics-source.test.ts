import { expect, test } from "vitest";
import { notFound } from "../../api/meta/status-error.ts";
import type { Client } from "../../client/client.ts";
import { metricsSource } from "./metrics-source.ts";

const { signal } = new AbortController();
const asked = { namespace: "ns", selector: "app=web", metric: "hits", metricSelector: undefined, signal };

/** An adapter that serves these versions, the first of them by preference. */
function adapter(...versions: readonly string[]): { readonly client: Client; readonly paths: string[] } {
  const paths: string[] = [];
  const request = ({ path }: { readonly path: string }): Promise<unknown> => {
    paths.push(path);
    if (path === "/apis/custom.metrics.k8s.io" && versions.length > 0) return Promise.resolve({ versions: versions.map((version) => ({ version })), preferredVersion: { version: versions[0] } });
    const version = /^\/apis\/custom\.metrics\.k8s\.io\/(\w+)\//.exec(path)?.[1];
    if (version === undefined || !versions.includes(version)) return Promise.reject(notFound({ group: "", resource: "x" }, "x"));
    return Promise.resolve({ items: [{ describedObject: { name: "a" }, timestamp: "2026-01-01T00:00:10Z", value: "1500m", ...(version === "v1beta1" ? { window: 30 } : { windowSeconds: 30 }) }] });
  };
  return { client: { request } as unknown as Client, paths };
}

test.each([
  [["v1beta1"], "v1beta1"],
  [["v1beta2"], "v1beta2"],
  [["v1beta1", "v1beta2"], "v1beta1"],
  [["v1", "v1beta2", "v1beta1"], "v1beta2"],
])("an adapter that serves %j is asked in %s", async (versions, version) => {
  const { client, paths } = adapter(...versions);
  expect([...await metricsSource(client).pods(asked)]).toEqual([["a", { value: 1500, timeMs: Date.UTC(2026, 0, 1, 0, 0, 10), windowMs: 30_000 }]]);
  expect(paths.at(-1)).toBe(`/apis/custom.metrics.k8s.io/${version}/namespaces/ns/pods/*/hits`);
});

test("that there is no adapter, or none we understand, is told", async () => {
  await expect(metricsSource(adapter().client).pods(asked)).rejects.toThrow("unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered");
  await expect(metricsSource(adapter("v2").client).pods(asked)).rejects.toThrow("unable to fetch metrics from custom metrics API: no known available metric versions found");
});

test("a metric of an object is the one value there is of it, whichever version of its kind is named", async () => {
  let values = ["7"];
  const paths: string[] = [];
  const answers: Readonly<Record<string, unknown>> = {
    "/apis/custom.metrics.k8s.io": { versions: [{ version: "v1beta2" }] },
    "/apis/networking.k8s.io": { versions: [{ version: "v1", groupVersion: "networking.k8s.io/v1" }] },
    "/apis/networking.k8s.io/v1": { resources: [{ name: "ingresses", kind: "Ingress" }] },
  };
  const request = ({ path }: { readonly path: string }): Promise<unknown> => {
    paths.push(path);
    if (path.startsWith("/apis/custom.metrics.k8s.io/")) return Promise.resolve({ items: values.map((value) => ({ describedObject: { name: "front" }, timestamp: "2026-01-01T00:00:10Z", value })) });
    return answers[path] === undefined ? Promise.reject(notFound({ group: "", resource: "x" }, "x")) : Promise.resolve(answers[path]);
  };
  const of = (kind: string) => metricsSource({ request } as unknown as Client).object({ ...asked, object: { apiVersion: "networking.k8s.io/v1beta1", kind, name: "front" } });
  expect(await of("Ingress")).toBe(7000);
  expect(paths.at(-1)).toBe("/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/ingresses.networking.k8s.io/front/hits");
  await expect(of("Egress")).rejects.toThrow('unable to fetch metrics from custom metrics API: unable to map kind Egress.networking.k8s.io to resource: no matches for kind "Egress" in group "networking.k8s.io"');
  for (values of [[], ["1", "2"]]) await expect(of("Ingress")).rejects.toThrow(`unable to fetch metrics from custom metrics API: the custom metrics API server returned ${values.length} results when we asked for exactly one`);
});
