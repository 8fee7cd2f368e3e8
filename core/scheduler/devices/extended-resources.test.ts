import { expect, test } from "vitest";
import type { Container, Pod } from "../../api/gen/core.v1.ts";
import type { DeviceClass } from "../../api/gen/resource.v1.ts";
import { node, pod, stored } from "../../../test/scheduling-cluster.ts";
import { classBehind, extendedClaim, neededOn } from "./extended-resources.ts";

const GPU = "example.com/gpu";
const deviceClass = (name: string, creationTimestamp: string, extendedResourceName?: string): DeviceClass => stored("resource.k8s.io/v1", "DeviceClass", name, { metadata: { creationTimestamp }, spec: extendedResourceName === undefined ? {} : { extendedResourceName } });
const container = (name: string, count: number | undefined, restartPolicy?: "Always"): Container => ({ name, image: "i", ...(restartPolicy && { restartPolicy }), resources: { requests: { cpu: "1", ...(count === undefined ? {} : { [GPU]: String(count) }) } } });
const having = (initContainers: Container[], containers: Container[]): Pod => ({ ...pod("p"), spec: { initContainers, containers } });

test("the newest class with the name stands behind a resource; every class stands behind its own", () => {
  const classes = [deviceClass("old", "2026-01-01T00:00:00Z", GPU), deviceClass("new", "2026-02-01T00:00:00Z", GPU), deviceClass("b", "2026-02-01T00:00:00Z")];
  expect([classBehind(GPU, classes)?.metadata.name, classBehind("deviceclass.resource.kubernetes.io/b", classes)?.metadata.name, classBehind("example.com/fpga", classes)]).toEqual(["new", "b", undefined]);
  expect(neededOn(node("a", { allocatable: { [GPU]: "2" } }), [GPU, "x.com/y"])).toEqual(["x.com/y"]);
});

test.each<[string, Pod, Record<string, number>, string[]]>([
  ["containers have their own", having([], [container("a", 1), container("b", undefined), container("c", 2)]), { "container-0-request-1": 1, "container-2-request-1": 2 }, ["a=container-0-request-1", "c=container-2-request-1"]],
  ["an init container uses what those after it have", having([container("i", 1)], [container("a", 2)]), { "container-1-request-1": 2 }, ["a=container-1-request-1", "i=container-1-request-1"]],
  ["what it needs beyond that is shared among init containers", having([container("i", 3), container("j", 2)], [container("a", 1)]), { "container-0-request-1": 2, "container-2-request-1": 1 },
    ["a=container-2-request-1", "i=container-2-request-1", "i=container-0-request-1", "j=container-2-request-1", "j=container-0-request-1"]],
  ["a sidecar before it is running and shares nothing", having([container("s", 1, "Always"), container("i", 1)], [container("a", undefined)]), { "container-0-request-1": 1, "container-1-request-1": 1 }, ["s=container-0-request-1", "i=container-1-request-1"]],
])("%s", (_, wanted, requests, mapped) => {
  const { claim, mappings } = extendedClaim(wanted, [GPU], { uid: "u", classOf: () => deviceClass("gpu", "2026-01-01T00:00:00Z", GPU) });
  expect(Object.fromEntries(claim.spec.devices!.requests!.map(({ name, exactly }) => [name, exactly?.count]))).toEqual(requests);
  expect(mappings.map(({ containerName, requestName }) => `${containerName}=${requestName}`)).toEqual(mapped);
});
