import { expect, test } from "vitest";
import type { NodeStatus } from "../../../core/api/gen/core.v1.ts";
import { type NodeFacts, nodeStatusOf, nodeStatusPatch } from "./node-status.ts";

const facts = (before: NodeStatus | undefined): NodeFacts => ({
  before, problems: [], pressures: new Set(), runtimeVersion: undefined, runtimeStatus: undefined, images: [], nowMs: 0,
  settings: { nodeIps: ["10.0.0.1"], hostname: "n", port: 10250, version: "v1.36.0", dataDir: "/", nodeName: "n" } as unknown as NodeFacts["settings"],
  machine: { machineId: "", systemUuid: "", bootId: "", kernelVersion: "", osImage: "", os: "linux", architecture: "amd64", swapBytes: 0 } as unknown as NodeFacts["machine"],
  capacity: { machine: { os: "linux", cpus: 2, memoryBytes: 2 ** 30, hugepages: [] }, diskBytes: 0, maxPods: 110, reserved: {} },
});

test("resources that others advertise on the node become allocatable, and go with the capacity", () => {
  const written = nodeStatusOf(facts({ capacity: { cpu: "1", "example.com/dongle": "4" } }));
  expect([written.capacity?.["example.com/dongle"], written.allocatable?.["example.com/dongle"], written.capacity?.["cpu"]]).toEqual(["4", "4", "2"]);
  const before: NodeStatus = { ...written, capacity: { cpu: "2" } };
  expect(nodeStatusPatch(before, nodeStatusOf(facts(before)))).toMatchObject({ status: { allocatable: { cpu: "2", "example.com/dongle": null } } });
});
