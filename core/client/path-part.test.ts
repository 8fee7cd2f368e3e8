import { expect, test } from "vitest";
import { PODS } from "./resources.ts";
import { clientOver } from "./resource-client.ts";

const { signal } = new AbortController();

test.each([
  ["n:9999/proxy/x", "ns", `invalid resource name "n:9999/proxy/x": [may not contain '/']`], ["a%2Fb", "ns", `invalid resource name "a%2Fb": [may not contain '%']`], ["..", "ns", `invalid resource name "..": [may not be '..']`],
  ["", "ns", "resource name may not be empty"], ["a", "ns/secrets", `invalid namespace "ns/secrets": [may not contain '/']`],
])("nothing is asked of an object %j in namespace %j", async (name, namespace, message) => {
  const asked: string[] = [];
  const call = async ({ path }: { readonly path: string }) => { asked.push(path); return {}; };
  const pods = clientOver({ call, watch: () => { throw new Error("no watch"); } }).resource(PODS);
  const object = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace }, spec: {} } as never;
  for (const made of [() => pods.get(object, { signal }), () => pods.delete(object, {}, { signal }), () => pods.update(object, { signal }), () => pods.updateStatus(object, { signal }), () => pods.patch(object, "application/merge-patch+json", {}, { signal }),
    () => pods.createSubresource(object, "eviction", {}, { signal }), () => pods.updateSubresource(object, "status", {}, { signal }), () => pods.apply(object, { fieldManager: "m", signal })]) await expect(made()).rejects.toThrow(message);
  expect(asked).toEqual([]);
});
