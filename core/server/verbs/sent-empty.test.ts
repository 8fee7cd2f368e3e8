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
