import { expect, test } from "vitest";
import { builtInSchemas } from "./facts-schema.ts";
import type { SchemaNode } from "./schema.ts";

/** `spec.template.spec.containers[].ports`: fields, items and map values on the way. */
function nodeAt(kind: string, path: string): SchemaNode {
  const [group, version, name] = kind.split("/") as [string, string, string];
  const root = builtInSchemas.schemaOf({ group, version, kind: name })!.root;
  return path.replaceAll("[]", ".[]").split(".").reduce((node, step) => (step === "[]" ? node.list!.items : node.map!.field(step)?.node ?? node.map!.element!), root);
}

test.each([
  ["/v1/Pod", "spec.containers", { atomic: false, keys: ["name"] }],
  ["/v1/Pod", "spec.containers[].ports", { atomic: false, keys: ["containerPort", "protocol"] }],
  ["/v1/Pod", "spec.containers[].args", { atomic: true, keys: [] }],
  ["/v1/Pod", "metadata.finalizers", { atomic: false, keys: [] }],
  ["/v1/Pod", "spec.topologySpreadConstraints", { atomic: false, keys: ["topologyKey", "whenUnsatisfiable"] }],
  ["/v1/Service", "spec.ports", { atomic: false, keys: ["port", "protocol"] }],
  ["/v1/Service", "spec.clusterIPs", { atomic: true, keys: [] }],
])("the list %s %s", (kind, path, expected) => {
  expect(nodeAt(kind, path).list).toMatchObject(expected);
});

test.each([
  ["apps/v1/Deployment", "spec.selector", true], ["/v1/Service", "spec.selector", true], ["/v1/Pod", "spec.nodeSelector", true], ["/v1/Pod", "spec.containers[].resources.limits", false],
  ["/v1/ConfigMap", "data", false], ["apps/v1/ControllerRevision", "data", true],
])("the map %s %s is atomic: %s", (kind, path, atomic) => {
  expect(nodeAt(kind, path).map!.atomic).toBe(atomic);
});

test("defaults of keys: what is declared, and zero for what Go always writes", () => {
  const port = nodeAt("/v1/Pod", "spec.containers[].ports[]").map!;
  expect([port.field("protocol")?.default, port.field("containerPort")?.default, port.field("hostPort")?.default]).toEqual(["TCP", 0, undefined]);
});

test("the empty Deployment has the structs Go always writes, so a create does not own them", () => {
  expect(builtInSchemas.schemaOf({ group: "apps", version: "v1", kind: "Deployment" })!.empty).toEqual(
    { metadata: {}, spec: { selector: null, template: { metadata: {}, spec: { containers: null } }, strategy: {} }, status: {} });
});
