import { expect, test } from "vitest";
import type { ApiObject } from "../../core/api/meta/object-meta.ts";
import type { ApiRequest, Transport } from "../../core/client/transport.ts";
import { slim } from "./slim-transport.ts";

const pod = (name: string): ApiObject => ({ apiVersion: "v1", kind: "Pod", metadata: { name, managedFields: [{ manager: "kubectl" }] }, spec: {} }) as unknown as ApiObject;
const bare = (name: string) => ({ apiVersion: "v1", kind: "Pod", metadata: { name }, spec: {} });

test("objects, lists and events come without managedFields, frozen; everything else as it is", async () => {
  const list = { apiVersion: "v1", kind: "PodList", metadata: { resourceVersion: "7" }, items: [pod("a"), pod("b")] };
  const answers = [pod("a"), list, "ok", { kind: "Status" }, undefined];
  const transport: Transport = {
    call: () => Promise.resolve(answers.shift()),
    async *watch() { yield { type: "ADDED", object: pod("c") }; yield { type: "BOOKMARK", object: { kind: "Pod", metadata: { resourceVersion: "9" } } as unknown as ApiObject }; },
  };
  const request = {} as ApiRequest, thin = slim(transport);
  const first = await thin.call(request) as ApiObject;
  expect(first).toEqual(bare("a"));
  expect([Object.isFrozen(first), Object.isFrozen(first.metadata)]).toEqual([true, true]);
  expect(await thin.call(request)).toEqual({ ...list, items: [bare("a"), bare("b")] });
  expect([await thin.call(request), await thin.call(request), await thin.call(request)]).toEqual(["ok", { kind: "Status" }, undefined]);
  expect(await Array.fromAsync(thin.watch(request))).toEqual([{ type: "ADDED", object: bare("c") }, { type: "BOOKMARK", object: { kind: "Pod", metadata: { resourceVersion: "9" } } }]);
});

test("a Lease keeps them: its node looks whether it has any, and takes them away", async () => {
  const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "hollow-1", managedFields: [{ manager: "coracle-simulate" }] }, spec: {} };
  const transport: Transport = { call: () => Promise.resolve(lease), async *watch() {} };
  expect(await slim(transport).call({} as ApiRequest)).toEqual(lease);
});
