/** Directories of volumes: each claim's its own, and data is given up only when nobody can want it any more. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import { stored } from "../../../test/static-informer.ts";
import type { Node, PersistentVolume, PersistentVolumeClaim } from "../../api/gen/core.v1.ts";
import type { StorageClass } from "../../api/gen/storage.v1.ts";
import { directoryName, doomedDirectory, FINALIZER, isOrphanedFinalizer, PROVISIONER, volumeFor } from "./plan.ts";

test("a directory goes only with a volume of ours that is to be deleted and nobody is bound to, and it is the one that was made", () => {
  const seen = new Set<string>();
  for (let seed = 1; seed <= 300; seed++) {
    const random = seededRandom(seed);
    const at = `seed ${seed}`;
    // names that differ only in where the dash stands must not meet in one directory
    const claim = stored<PersistentVolumeClaim>("v1", "PersistentVolumeClaim", random.pick(["a/b-c", "a-b/c", "a/b"]), { metadata: { uid: `u${seed}` }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } } as never);
    const node = stored<Node>("v1", "Node", random.pick(["n1", "n2"]), { spec: {} });
    const storageClass = stored<StorageClass>("storage.k8s.io/v1", "StorageClass", "c", { provisioner: PROVISIONER, reclaimPolicy: random.pick(["Delete", "Retain", undefined]) } as never);
    expect(seen.has(directoryName(claim)), at).toBe(false);
    seen.add(directoryName(claim));
    const made = volumeFor(claim, { storageClass, node, path: `/storage/${directoryName(claim)}` });

    const policy = random.pick([made.spec.persistentVolumeReclaimPolicy, "Delete", "Retain"]); // people may change it
    const phase = random.pick([undefined, "Pending", "Available", "Bound", "Released", "Failed"]);
    const deleting = random.pick([false, false, true]);
    const isOurs = random.pick([true, true, true, false]);
    const annotations = isOurs ? made.metadata.annotations : { ...made.metadata.annotations, "pv.kubernetes.io/provisioned-by": "other.example.org" };
    const volume = { ...made, metadata: { ...made.metadata, annotations, ...(deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}) }, spec: { ...made.spec, persistentVolumeReclaimPolicy: policy }, status: { phase } } as unknown as PersistentVolume;
    const doomed = doomedDirectory(volume);
    if (doomed !== undefined) expect([isOurs, policy, phase === "Bound", doomed], at).toEqual([true, "Delete", false, { node: node.metadata.name, name: directoryName(claim) }]);
    const held = made.metadata.finalizers?.includes(FINALIZER) ?? false;
    // nothing of ours stays for ever: once it is deleted and unbound, either its directory goes or the finalizer does
    if (isOurs && deleting && held && phase !== "Bound") expect(doomed !== undefined || isOrphanedFinalizer(volume), at).toBe(true);
    if (isOurs && policy === "Delete" && phase === "Released") expect(doomed, at).toBeDefined();
    expect(doomed !== undefined && isOrphanedFinalizer(volume), at).toBe(false);
  }
});
