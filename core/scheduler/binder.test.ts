import { expect, test } from "vitest";
import { node, pod } from "../../test/scheduling-cluster.ts";
import { Binder } from "./binder.ts";
import { placedPod } from "./node-info.ts";
import { Snapshot } from "./snapshot.ts";

test.each(["deleted", "given a node by another", "there"])("who is let go of is nominated as before, unless he is gone or has a node meanwhile: %s", (meanwhile) => {
  const snapshot = new Snapshot(), waiting = pod("p", {});
  snapshot.setNode(node("n") as never);
  snapshot.setPod(waiting);
  snapshot.nominate(waiting, "n");
  const binder = new Binder({ deps: { clock: { uptimeMs: () => 0 } }, snapshot, cluster: {}, metrics: { point: () => {} } } as never);
  const held = binder.hold({ attempt: { key: "default/p" }, candidate: placedPod(waiting), profile: {} } as never, "n");
  if (meanwhile === "deleted") snapshot.removePod(waiting);
  else if (meanwhile !== "there") snapshot.setPod({ ...waiting, spec: { ...waiting.spec, nodeName: "n" } });
  binder.letGo(held);
  expect(snapshot.nominatedTo("n").length).toBe(meanwhile === "there" ? 1 : 0);
});
