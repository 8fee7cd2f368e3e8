import { expect, test } from "vitest";
import type { PersistentVolume, Pod, Volume } from "../../../core/api/gen/core.v1.ts";
import type { Client } from "../../../core/client/client.ts";
import { notFound } from "../../../core/api/meta/status-error.ts";
import { boundVolume, mountOptionsOf } from "./persistent-volume.ts";

const pod = { metadata: { name: "p", namespace: "n", uid: "u" }, spec: {} } as unknown as Pod;
const claimed: Volume = { name: "v", persistentVolumeClaim: { claimName: "c" } };
const made: Volume = { name: "v", ephemeral: {} };
const bound = { metadata: { name: "c", uid: "1" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } };
const pv = { metadata: { name: "pv" }, spec: { claimRef: { uid: "1" } } };

async function problemOf(volume: Volume, claim: object | undefined, found: object | undefined): Promise<string | undefined> {
  const client = { resource: ({ plural }: { plural: string }) => ({ get: async ({ metadata: { name } }: { metadata: { name: string } }) => {
    const object = plural === "persistentvolumes" ? found : claim;
    if (!object) throw notFound({ group: "", resource: plural }, name);
    return object;
  } }) } as unknown as Client;
  return await boundVolume({ client, signal: new AbortController().signal }, pod, volume).then(() => undefined, ({ message }: Error) => message.replace("Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: ", ""));
}

const deleting = (...finalizers: string[]): object => ({ ...bound, metadata: { ...bound.metadata, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers } });
const owned = { ...bound, metadata: { ...bound.metadata, ownerReferences: [{ controller: true, uid: "u" }] } };

test.each<[string, Volume, object | undefined, object | undefined, string | undefined]>([
  ["its claim and its volume know each other", claimed, bound, pv, undefined],
  ["there is no claim", claimed, undefined, pv, 'error processing PVC n/c: failed to fetch PVC from API server: persistentvolumeclaims "c" not found'],
  ["its claim is being deleted", claimed, deleting(), pv, "error processing PVC n/c: PVC is being deleted"],
  ["its claim is to be deleted once no pod has it any more", claimed, deleting("kubernetes.io/pvc-protection"), pv, undefined],
  ["its claim is not bound", claimed, { ...bound, spec: {}, status: { phase: "Pending" } }, pv, "error processing PVC n/c: PVC is not bound"],
  ["its claim does not say to what it is bound", claimed, { ...bound, spec: {} }, pv, "error processing PVC n/c: PVC has empty pvc.Spec.VolumeName"],
  ["there is no volume", claimed, bound, undefined, 'error processing PVC n/c: failed to fetch PV pv from API server: persistentvolumes "pv" not found'],
  ["the volume knows of no claim", claimed, bound, { ...pv, spec: {} }, "error processing PVC n/c: found PV object pv but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"],
  ["the volume is another claim's", claimed, bound, { ...pv, spec: { claimRef: { uid: "2" } } }, "error processing PVC n/c: found PV object pv but its pv.Spec.ClaimRef.UID 2 does not point to claim.UID 1"],
  ["the claim was made for it", made, owned, pv, undefined],
  ["the claim was made for another pod", made, bound, pv, "PVC n/p-v was not created for pod n/p (pod is not owner)"],
])("what a pod may not have, and why: %s", async (_, volume, claim, found, expected) => {
  expect(await problemOf(volume, claim, found)).toBe(expected);
});

test.each<[object, object, string[]]>([
  [{}, {}, []], [{}, { mountOptions: ["ro", "noatime", "ro"] }, ["noatime", "ro"]],
  [{ annotations: { "volume.beta.kubernetes.io/mount-options": "soft,,nolock" } }, { mountOptions: ["ro"] }, ["nolock", "soft"]], // who says it in the old way is heard first
])("a volume of %j and %j is mounted with %j", (metadata, spec, options) => expect(mountOptionsOf({ metadata, spec } as PersistentVolume)).toEqual(options));
