import { expect, test } from "vitest";
import type { Node } from "../../core/api/gen/core.v1.ts";
import { conflict } from "../../core/api/meta/status-error.ts";
import { informerFactory } from "../../core/client/informer-factory.ts";
import { NODES } from "../../core/client/resources.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { systemRandom as random } from "../../core/lifecycle/random.ts";
import { runAll } from "../../core/lifecycle/run-all.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { eventually, fakeApi } from "../../test/fake-api.ts";
import { controlPlaneRole } from "./node-role.ts";

const node = (name: string): Node => ({ apiVersion: "v1", kind: "Node", metadata: { name, labels: { rack: "a" } } }) as unknown as Node;

test("a server's own node is of the control plane, also when it was deleted and registers anew; the others are not; who takes the role away has it away", async () => {
  const api = fakeApi(), nodes = api.client.resource(NODES), end = new AbortController(), { signal } = end;
  const labels = () => Object.fromEntries(api.all(NODES).map((one) => [one.metadata.name, one.metadata.labels]));
  const informers = informerFactory({ client: api.client, clock, random, log });
  const running = runAll([informers, controlPlaneRole({ nodeName: "shed", client: api.client, informers, clock, log })], signal);
  let refused = false;
  api.fail = ({ method }) => (method === "PATCH" && !refused ? ((refused = true), conflict({ group: "", resource: "nodes" }, "shed", "busy")) : undefined);

  await nodes.create(node("barn"), { signal });
  await nodes.create(node("shed"), { signal });
  await eventually(labels, ({ shed }) => shed?.["node-role.kubernetes.io/control-plane"] === "true");
  expect(refused).toBe(true);
  expect(labels()).toEqual({ barn: { rack: "a" }, shed: { rack: "a", "node-role.kubernetes.io/control-plane": "true" } });

  await nodes.patch(node("shed"), "application/merge-patch+json", { metadata: { labels: { "node-role.kubernetes.io/control-plane": null, rack: "b" } } }, { signal });
  await nodes.create(node("hut"), { signal });
  await informers.of(NODES).caughtUp(api.all(NODES), signal);
  expect(labels()["shed"]).toEqual({ rack: "b" });

  await nodes.delete(node("shed"), {}, { signal });
  await nodes.create(node("shed"), { signal });
  await eventually(labels, ({ shed }) => shed?.["node-role.kubernetes.io/control-plane"] === "true");
  end.abort();
  await running;
});
