import { expect, test } from "vitest";
import { apiServer } from "../../../test/api-server.ts";

test("what was sent as an empty list or map is shown so where it is refused, by a patch too; what was not sent as none", async () => {
  await using api = await apiServer();
  const message = async (...asked: Parameters<typeof api.ask>): Promise<unknown> => ((await api.ask(...asked)).body as { message?: string }).message;
  const template = (labels: object) => ({ metadata: labels, spec: { containers: [{ name: "c", image: "i" }] } });
  const deployment = (labels: object) => ({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "a" }, spec: { selector: { matchLabels: { a: "b" } }, template: template(labels) } });
  const to = "/apis/apps/v1/namespaces/default/deployments", mismatch = "`selector` does not match template `labels`";
  const said = (shown: string): string => `Deployment.apps "a" is invalid: spec.template.metadata.labels: Invalid value: ${shown}: ${mismatch}`;
  expect([await message("POST", to, { body: deployment({ labels: {} }) }), await message("POST", to, { body: deployment({}) })]).toEqual([said("{}"), said("null")]);
  await api.ask("POST", to, { body: deployment({ labels: { a: "b" } }) });
  const patch = (type: string, body: unknown) => message("PATCH", `${to}/a`, { headers: { "content-type": `application/${type}` }, body: body as object });
  expect(await patch("json-patch+json", [{ op: "replace", path: "/spec/template/metadata/labels", value: {} }])).toBe(said("{}"));
  expect(await patch("merge-patch+json", { spec: { template: { metadata: { labels: null } } } })).toBe(said("null"));
  const failure = { rules: [{ action: "Ignore", onExitCodes: { operator: "In", values: [] } }] };
  const job = { apiVersion: "batch/v1", kind: "Job", metadata: { name: "j" }, spec: { podFailurePolicy: failure, template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } } } };
  expect(await message("POST", "/apis/batch/v1/namespaces/default/jobs", { body: job })).toBe('Job.batch "j" is invalid: spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: []: at least one value is required');
  const volume = { apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v" }, spec: { capacity: {}, accessModes: ["ReadWriteOnce"], hostPath: { path: "/a" } } };
  expect(await message("POST", "/api/v1/persistentvolumes", { body: volume })).toContain('spec.capacity: Unsupported value: {}: supported values: "storage"');
  const ingress = (spec: object) => message("POST", "/apis/networking.k8s.io/v1/namespaces/default/ingresses", { body: { apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata: { name: "i" }, spec } });
  const ofRules = (shown: string): string => `Ingress.networking.k8s.io "i" is invalid: spec: Invalid value: ${shown}: either \`defaultBackend\` or \`rules\` must be specified`;
  expect([await ingress({}), await ingress({ rules: [] })]).toEqual([ofRules("null"), ofRules("[]")]);
});

test("an empty list is refused where none may be set, as upstream does", async () => {
  await using api = await apiServer();
  const podTemplate = (spec: object) => ({ apiVersion: "v1", kind: "PodTemplate", metadata: { name: "a" }, template: { metadata: {}, spec: { containers: [{ name: "c", image: "i" }], ...spec } } });
  const message = async (body: object): Promise<string> => ((await api.ask("POST", "/api/v1/namespaces/default/podtemplates", { body })).body as { message?: string }).message ?? "";
  expect(await message(podTemplate({ resources: { claims: [] } }))).toBe('PodTemplate "a" is invalid: template.spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level');
  const ephemeral = { name: "e", image: "i" };
  for (const [field, value] of Object.entries({ ports: [], resizePolicy: [], restartPolicyRules: [], resources: { limits: {} } }))
    expect(await message(podTemplate({ ephemeralContainers: [{ ...ephemeral, [field]: value }] }))).toContain(`template.spec.ephemeralContainers[0].${field}: Forbidden: cannot be set for an Ephemeral Container`);
  expect(await message(podTemplate({ ephemeralContainers: [{ ...ephemeral, resources: {} }] }))).not.toContain("cannot be set");
  expect(await message(podTemplate({ volumes: [{ name: "v", ephemeral: { volumeClaimTemplate: { metadata: { finalizers: [] }, spec: {} } } }] }))).toContain("volumeClaimTemplate.metadata.finalizers: Forbidden: cannot be set");
  const pod = (spec: object) => api.ask("POST", "/api/v1/namespaces/default/pods", { body: { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i" }], ...spec } } });
  expect((await pod({ overhead: {}, nodeSelector: {} })).body).toMatchObject({ spec: { containers: [{ name: "c" }] } });
  expect(Object.keys(((await api.ask("GET", "/api/v1/namespaces/default/pods/p")).body as { readonly spec: object }).spec)).not.toContain("overhead"); // who might mind it is a plug-in
  const claims = { apiVersion: "resource.k8s.io/v1", kind: "ResourceClaimTemplate", metadata: { name: "a" }, spec: { metadata: { finalizers: [] }, spec: {} } };
  expect((await api.ask("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates", { body: claims })).body).toMatchObject({ message: 'ResourceClaimTemplate.resource.k8s.io "a" is invalid: spec.metadata.finalizers: Forbidden: cannot be set' });
  const schema = { type: "object", properties: { a: { type: "object", dependencies: {} } } };
  const kind = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: "foos.e.com" }, spec: { group: "e.com", scope: "Cluster", names: { plural: "foos", kind: "Foo" }, versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }] } };
  expect((await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: kind })).body).toMatchObject({ code: 422, message: 'CustomResourceDefinition.apiextensions.k8s.io "foos.e.com" is invalid: spec.validation.openAPIV3Schema.properties[a].dependencies: Forbidden: dependencies is not supported' });
});

test("a list that is sent empty is so in the difference that an update is refused for", async () => {
  await using api = await apiServer();
  const volume = (source: object) => ({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v" }, spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], ...source } });
  await api.ask("POST", "/api/v1/persistentvolumes", { body: volume({ hostPath: { path: "/a" } }) });
  const { message } = (await api.ask("PUT", "/api/v1/persistentvolumes/v", { body: volume({ fc: { wwids: [], lun: 1 } }) })).body as { readonly message: string };
  expect(message).toContain('+  "TargetWWNs": null,');
  expect(message).toContain('+  "WWIDs": []');
});

test("a template of claims that is updated is refused for empty finalizers as a new one is, and a selector is shown as JSON has it", async () => {
  await using api = await apiServer();
  const to = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates";
  const template = (metadata: object) => ({ apiVersion: "resource.k8s.io/v1", kind: "ResourceClaimTemplate", metadata: { name: "a" }, spec: { metadata, spec: {} } });
  await api.ask("POST", to, { body: template({}) });
  expect((await api.ask("PUT", `${to}/a`, { body: template({ finalizers: [] }) })).body).toMatchObject({ message: 'ResourceClaimTemplate.resource.k8s.io "a" is invalid: spec.metadata.finalizers: Forbidden: cannot be set' });
  const job = (selector?: object) => ({ apiVersion: "batch/v1", kind: "Job", metadata: { name: "j" }, spec: { ...(selector && { selector }), template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } } } });
  await api.ask("POST", "/apis/batch/v1/namespaces/default/jobs", { body: job() });
  expect((await api.ask("PUT", "/apis/batch/v1/namespaces/default/jobs/j", { body: job({ matchLabels: {} }) })).body).toMatchObject({ message: expect.stringContaining("spec.selector: Invalid value: {}: field is immutable") as string });
});

test("an empty list of a slice has no owner, as it has no other list beside it", async () => {
  await using api = await apiServer();
  const slice = { apiVersion: "resource.k8s.io/v1", kind: "ResourceSlice", metadata: { name: "s" }, spec: { driver: "d.example.com", nodeName: "n", pool: { name: "p", resourceSliceCount: 1 }, devices: [] } };
  const { code, body } = await api.ask("POST", "/apis/resource.k8s.io/v1/resourceslices", { body: slice });
  const [{ fieldsV1 }] = (body as { readonly metadata: { readonly managedFields: readonly [{ readonly fieldsV1: unknown }] } }).metadata.managedFields;
  expect([code, fieldsV1]).toEqual([201, { "f:spec": { "f:driver": {}, "f:nodeName": {}, "f:pool": { "f:name": {}, "f:resourceSliceCount": {} } } }]);
});
