import { expect, test } from "vitest";
import { fakeApi } from "../../../test/fake-api.ts";
import { staticInformer } from "../../../test/static-informer.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { hasFinalizer } from "../../api/meta/object-meta.ts";
import type { Informers } from "../../client/informer-factory.ts";
import { PODS } from "../../client/resources.ts";
import { podReleaser } from "./finalizer.ts";
import { TRACKING_FINALIZER } from "./pods.ts";

const signal = AbortSignal.timeout(60_000);

test("a pod that was released is not counted again while our copy is old, whether it was there or gone; one that could not be released is", async () => {
  const api = fakeApi(), client = api.client.resource(PODS);
  const create = (name: string) => client.create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default", finalizers: [TRACKING_FINALIZER, "example.com/mine"] }, spec: { containers: [{ name: "c" }] } }, { signal });
  const seen: Readonly<Pod>[] = [];
  for (const name of ["there", "gone", "refused", "other"]) seen.push(await create(name));
  const [there, gone, refused, other] = seen as [Pod, Pod, Pod, Pod];
  await client.update({ ...gone, metadata: { ...gone.metadata, finalizers: [] } }, { signal });
  await client.delete(gone, {}, { signal });
  const copy = staticInformer<Pod>(...(seen as Pod[]));
  const { release, current } = podReleaser({ client: api.client, informers: { of: () => copy } as unknown as Informers });
  const tracked = () => current(seen).filter((pod) => hasFinalizer(pod, TRACKING_FINALIZER)).map(({ metadata }) => metadata.name);

  await release(there, signal);
  await release(gone, signal);
  expect(tracked()).toEqual(["refused", "other"]);
  expect(current(seen)[0]!.metadata.finalizers).toEqual(["example.com/mine"]);
  api.fail = () => new Error("not now");
  await expect(release(refused, signal)).rejects.toThrow("not now");
  expect(tracked()).toEqual(["refused", "other"]);
  expect(current([other])[0]).toBe(other);

  api.fail = undefined;
  copy.remove(gone); // our copy knows by now; what is known is not remembered
  await release(refused, signal);
  expect(current([gone])[0]).toBe(gone);
});
