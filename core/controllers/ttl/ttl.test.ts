import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { NODES } from "../../client/resources.ts";
import { stepFor, ttlSecondsOf } from "./plan.ts";
import { ttlController } from "./ttl.ts";

test("more nodes, longer; back only when there are clearly fewer", () => {
  let step = 0;
  const told = [1, 100, 101, 95, 90, 89, 3000, 1850, 1799, 899, 0].map((nodes) => {
    step = stepFor(step, nodes);
    return [nodes, ttlSecondsOf(step)];
  });
  expect(told).toEqual([[1, 0], [100, 0], [101, 15], [95, 15], [90, 15], [89, 0], [3000, 300], [1850, 300], [1799, 60], [899, 30], [0, 0]]);
});

test("every node is told, whatever else its annotations say", () => withControllers((deps) => [ttlController(deps)], async (api, call) => {
  const nodes = api.client.resource(NODES);
  await nodes.create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: {} } as never, call);
  await nodes.create({ apiVersion: "v1", kind: "Node", metadata: { name: "n2", annotations: { a: "b", "node.alpha.kubernetes.io/ttl": "7" } }, spec: {} } as never, call);
  const told = await eventually(() => api.all(NODES).map(({ metadata }) => metadata.annotations), (all) => all.every((one) => one?.["node.alpha.kubernetes.io/ttl"] === "0"));
  expect(told).toEqual([{ "node.alpha.kubernetes.io/ttl": "0" }, { a: "b", "node.alpha.kubernetes.io/ttl": "0" }]);
}));
