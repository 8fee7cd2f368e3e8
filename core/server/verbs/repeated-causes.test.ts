import { expect, test } from "vitest";
import { apiServer } from "../../../test/api-server.ts";

/** The fields that the causes of a refusal are about, each with what it says at first. */
function causes({ body }: { readonly body: { readonly details?: { readonly causes?: readonly { readonly field: string; readonly message: string }[] } } }): string[] {
  return (body.details?.causes ?? []).map(({ field, message }) => `${field.replace("metadata.", "")} ${message.includes("immutable") ? "immutable" : message.includes("fully qualified") ? "unqualified" : "form"}`);
}

const FORM = "annotations form";
test.each<[kind: string, path: string, object: object, whole: string[], finalizer: string[], status: string[] | undefined]>([
  ["both ways", "/api/v1/namespaces/a/configmaps", {}, [FORM, "uid immutable", FORM, "uid immutable", FORM, FORM], ["finalizers form", "finalizers[0] unqualified", "finalizers form", "finalizers[0] unqualified"], undefined],
  ["as a change", "/api/v1/namespaces/a/services", { spec: { ports: [{ port: 80 }] } }, [FORM, "uid immutable", FORM, "uid immutable", FORM], ["finalizers form", "finalizers[0] unqualified"], [FORM, FORM, FORM]],
  ["as a whole", "/api/v1/namespaces/a/limitranges", { spec: { limits: [{ type: "Pod" }] } }, [FORM, "uid immutable", FORM, FORM], ["finalizers form", "finalizers form", "finalizers[0] unqualified"], undefined],
  ["not at all", "/apis/policy/v1/namespaces/a/poddisruptionbudgets", { spec: { selector: {} } }, [FORM, "uid immutable", FORM], ["finalizers form"], [FORM, FORM]],
])("metadata of an update that a kind looks at once more %s is refused as often", async (_, path, object, whole, finalizer, status) => {
  await using api = await apiServer();
  const { body } = await api.ask("POST", path, { body: { metadata: { name: "one" }, ...object } });
  const patch = async (metadata: object, to = "") => causes(await api.ask("PATCH", `${path}/one${to}`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata } }));
  expect(body.metadata.name).toBe("one");
  expect(await patch({ annotations: { a_: "x" }, uid: "another" })).toEqual(whole);
  expect(await patch({ finalizers: ["a b"] })).toEqual(finalizer);
  if (status) expect(await patch({ annotations: { a_: "x" } }, "/status")).toEqual(status);
  expect(await patch({ annotations: { a: "x" } })).toEqual([]);
});

test("an address is looked at before its change", async () => {
  await using api = await apiServer();
  const path = "/apis/networking.k8s.io/v1/ipaddresses";
  await api.ask("POST", path, { body: { metadata: { name: "10.9.9.9" }, spec: { parentRef: { resource: "services", name: "a" } } } });
  const told = await api.ask("PATCH", `${path}/10.9.9.9`, { headers: { "content-type": "application/merge-patch+json" }, body: { spec: { parentRef: { name: "a/b" } } } });
  expect(causes(told)).toEqual(["spec.parentRef.name form", "spec.parentRef immutable"]);
});

test.each<[string, string, object]>([
  ["namespaces", "/api/v1/namespaces", {}], ["nodes", "/api/v1/nodes", {}], ["storage classes", "/apis/storage.k8s.io/v1/storageclasses", { provisioner: "a.b/c" }],
  ["storage capacities", "/apis/storage.k8s.io/v1/namespaces/a/csistoragecapacities", { storageClassName: "c" }], ["device classes", "/apis/resource.k8s.io/v1/deviceclasses", { spec: {} }],
  ["claims", "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims", { spec: {} }], ["claim templates", "/apis/resource.k8s.io/v1/namespaces/a/resourceclaimtemplates", { spec: { spec: {} } }],
])("the metadata of %s is looked at as it is before its change", async (_, path, object) => {
  await using api = await apiServer();
  expect((await api.ask("POST", path, { body: { metadata: { name: "one" }, ...object } })).code).toBe(201);
  const told = await api.ask("PATCH", `${path}/one`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { annotations: { a_: "x" }, uid: "another", finalizers: ["bad"] } } });
  expect(causes(told)).toEqual([FORM, "uid immutable", FORM, FORM, "finalizers[0] unqualified", "uid immutable", FORM, "finalizers[0] unqualified"]);
});

/** Of a key that nobody has any more. */
const CERTIFICATE_REQUEST = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISk1IQUNBUUF3RGpFTU1Bb0dBMVVFQXd3RFlXNXVNRmt3RXdZSEtvWkl6ajBDQVFZSUtvWkl6ajBEQVFjRApRZ0FFbkcraGxjMHFWV0plRytmT3I3NUovNUFFSk1KdE9UZXZjUlA5amgyNVdHTUxKMmNmRFdhZEtMaWpBOTE1CjdIQm1tZGpXSTNRUmtTNkwycUVBa29QVDVLQUFNQW9HQ0NxR1NNNDlCQU1DQTBrQU1FWUNJUUR2K2JwTEpITkMKdEY4MGl6N2N2U0NZdUUrS3hoa2Zab1Z3RmZOU29zYzAvd0loQUxHalR3TU9lazJld29MN3FpRWVlSUZxdW4wVgpQZzNDT1k0dmo5Q21QOGpKCi0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

test("so is that of a request for a certificate, whatever part of it is written, and of a runtime class", async () => {
  await using api = await apiServer();
  const patch = async (path: string, metadata: object): Promise<string[]> => causes(await api.ask("PATCH", path, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata } }));
  await api.ask("POST", "/apis/node.k8s.io/v1/runtimeclasses", { body: { metadata: { name: "one" }, handler: "h" } });
  expect(await patch("/apis/node.k8s.io/v1/runtimeclasses/one", { annotations: { a_: "x" }, uid: "another" })).toEqual([FORM, "uid immutable", FORM, FORM, "uid immutable", FORM]);
  const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  expect((await api.ask("POST", path, { body: { metadata: { name: "one", finalizers: ["a.b/c"] }, spec: { request: CERTIFICATE_REQUEST, signerName: "a.b/c", usages: ["client auth"] } } })).code).toBe(201);
  await api.ask("DELETE", `${path}/one`);
  for (const part of ["", "/status"]) expect(await patch(`${path}/one${part}`, { finalizers: ["bad"] })).toEqual(["finalizers form", "finalizers[0] unqualified", "finalizers form", "finalizers[0] unqualified"]);
});

test("a create is refused once for each thing that is wrong with its metadata", async () => {
  await using api = await apiServer();
  expect(causes(await api.ask("POST", "/api/v1/namespaces/a/configmaps", { body: { metadata: { name: "one", annotations: { a_: "x" } } } }))).toEqual([FORM]);
});

test.each<[kind: string, path: string, object: object, change: object, told: string[]]>([
  ["a role's rules are looked at before the change", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles", { rules: [] }, { rules: [{ apiGroups: [""], resources: ["pods"] }] }, [FORM, FORM, FORM, "rules[0].verbs form", FORM]],
  ["so is a job", "/apis/batch/v1/namespaces/a/jobs", { spec: { suspend: true, template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } } } }, { spec: { parallelism: -1 } }, [FORM, FORM, FORM, "spec.parallelism form", FORM, "spec.parallelism form"]],
  ["a secret's change before what it holds", "/api/v1/namespaces/a/secrets", {}, { type: "kubernetes.io/ssh-auth" }, [FORM, FORM, FORM, "type immutable", FORM, "data[ssh-privatekey] form"]],
  ["a config map's, too", "/api/v1/namespaces/a/configmaps", { immutable: true }, { data: { "..": "" } }, [FORM, FORM, FORM, "data immutable", FORM, "data[..] form"]],
  ["an ingress class after it", "/apis/networking.k8s.io/v1/ingressclasses", { spec: { controller: "a.b/c" } }, { spec: { controller: "x y" } }, [FORM, FORM, FORM, "spec.controller immutable", FORM, "spec.controller form"]],
])("%s of the metadata", async (_, path, object, change, told) => {
  await using api = await apiServer();
  await api.ask("POST", path, { body: { metadata: { name: "one" }, ...object } });
  expect(causes(await api.ask("PATCH", `${path}/one`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { annotations: { a_: "x" } }, ...change } }))).toEqual(told);
});

test("a stateful set's template has its labels and annotations looked at twice", async () => {
  await using api = await apiServer();
  const template = { metadata: { labels: { a: "b", x: "a b" }, annotations: { "c d": "" } }, spec: { containers: [{ name: "c", image: "i" }] } };
  const told = await api.ask("POST", "/apis/apps/v1/namespaces/a/statefulsets", { body: { metadata: { name: "one" }, spec: { selector: { matchLabels: { a: "b" } }, template } } });
  expect(causes(told)).toEqual(["spec.template.labels form", "spec.template.annotations form", "spec.template.labels form", "spec.template.annotations form"]);
});
