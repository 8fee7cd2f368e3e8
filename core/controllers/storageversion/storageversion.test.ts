import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { ServerStorageVersion, StorageVersion } from "../../api/gen/apiserverinternal.v1alpha1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { LEASES, STORAGE_VERSIONS } from "../../client/resources.ts";
import { statusWith } from "./entries.ts";
import { ownStorageVersions } from "./own-entries.ts";
import { storageVersionControllers } from "./storageversion.ts";

const entry = (apiServerID: string, version = "v1"): ServerStorageVersion => ({ apiServerID, encodingVersion: version, decodableVersions: [version] });
const version = (name: string, ...servers: ServerStorageVersion[]) => ({ apiVersion: "internal.apiserver.k8s.io/v1alpha1", kind: "StorageVersion", metadata: { name }, spec: {}, status: { storageVersions: servers } }) as NewObject<StorageVersion>;
const lease = (name: string, labels: Record<string, string> = { "apiserver.kubernetes.io/identity": "kube-apiserver" }) => ({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name, namespace: "kube-system", labels }, spec: {} });

test("what servers that are gone have said goes, and what nobody says any more", async () => {
  const api = fakeApi(), versions = api.client.resource(STORAGE_VERSIONS), leases = api.client.resource(LEASES), call = { signal: new AbortController().signal };
  const said = () => api.all(STORAGE_VERSIONS).map(({ metadata, status }) => [metadata.name, status?.storageVersions?.map(({ apiServerID }) => apiServerID).join(), status?.commonEncodingVersion].join(" "));
  for (const one of [lease("a"), lease("b"), lease("other", {})]) await leases.create(one, call);
  for (const one of [version("core.none"), version("core.both", entry("a"), entry("b", "v2")), version("core.b", entry("b")), version("core.gone", entry("gone")), version("core.other", entry("other"), entry("a"))]) await versions.create(one, call);
  await withControllers((deps) => storageVersionControllers(deps), async () => {
    await eventually(said, (seen) => Bun.deepEquals(seen, ["core.none  ", "core.both a,b ", "core.b b ", "core.other a v1"]));
    await leases.delete({ metadata: { namespace: "kube-system", name: "b" } }, {}, call);
    await eventually(said, (seen) => Bun.deepEquals(seen, ["core.none  ", "core.both a v1", "core.other a v1"]));
    await versions.create(version("core.late", entry("gone")), call);
    await eventually(said, (seen) => seen.length === 3);
  }, { api });
});

test("a server says which versions it stores once it has a Lease, beside what others say", () => withControllers(({ client, clock, log }) => [ownStorageVersions({ client, clock, log, serverId: "a", entries: new Map([["core.pods", { encodingVersion: "v1", decodableVersions: ["v1"], servedVersions: ["v1"] }]]) })], async (api, call) => {
  const versions = api.client.resource(STORAGE_VERSIONS);
  await versions.create(version("core.pods", entry("b", "v2"), entry("a", "v0")), call);
  await Bun.sleep(50);
  expect(api.all(STORAGE_VERSIONS)[0]?.status?.conditions).toBeUndefined();
  await api.client.resource(LEASES).create(lease("a"), call);
  await eventually(() => api.all(STORAGE_VERSIONS)[0]?.status, (seen) => Bun.deepEquals(seen?.storageVersions, [entry("b", "v2"), { ...entry("a"), servedVersions: ["v1"] }]));
  expect(api.all(STORAGE_VERSIONS)[0]?.status?.conditions).toMatchObject([{ type: "AllEncodingVersionsEqual", status: "False", reason: "CommonEncodingVersionUnset", message: "Common encoding version unset" }]);
}));

test("since when all write in the same version is told, and since when in which", () => {
  const [then, now] = ["2026-05-01T11:00:00Z", "2026-05-01T12:00:00Z"], metadata = { name: "core.pods" } as StorageVersion["metadata"];
  const since = (status: StorageVersion["status"], ...servers: ServerStorageVersion[]) => { const next = statusWith({ metadata, status }, servers, now); return [next.commonEncodingVersion, next.conditions?.[0]?.status, next.conditions?.[0]?.lastTransitionTime]; };
  const equal = statusWith({ metadata, status: undefined }, [entry("a"), entry("b")], then), unequal = statusWith({ metadata, status: undefined }, [entry("a"), entry("b", "v2")], then);
  expect([since(equal, entry("a")), since(equal, entry("a", "v2")), since(equal, entry("a"), entry("b", "v2"))]).toEqual([["v1", "True", then], ["v2", "True", now], [undefined, "False", now]]);
  expect([since(unequal, entry("a")), since(unequal), since(unequal, entry("a"), entry("c", "v3"))]).toEqual([["v1", "True", now], [undefined, "False", then], [undefined, "False", then]]);
});
