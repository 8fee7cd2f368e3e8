import { expect, test } from "vitest";
import { apiServer } from "../../../test/api-server.ts";
import type { ServedResource } from "../../registry/registry.ts";
import { ownableFields } from "./managed-fields.ts";

test.each([["resource.k8s.io", "devicetaintrules"], ["resource.k8s.io", "resourceclaims"], ["internal.apiserver.k8s.io", "storageversions"], ["scheduling.k8s.io", "podgroups"]])("of %s/%s a status update that takes no metadata owns none", (group, plural) => {
  const served = { row: { group, plural, subresources: [{ name: "status" }] } } as unknown as ServedResource;
  expect(ownableFields(served, "status")).toBe(ownableFields({ row: { group: "storage.k8s.io", plural: "volumeattachments", subresources: [] } } as unknown as ServedResource, "status"));
  expect(ownableFields(served, "status")).not.toBe(ownableFields({ row: { group: "apps", plural: "daemonsets", subresources: [] } } as unknown as ServedResource, "status"));
});

test("a program's name is UTF-8 in its header, a character for each byte", async () => {
  await using api = await apiServer();
  const { body } = await api.ask("POST", "/api/v1/namespaces/a/configmaps", { headers: { "user-agent": Buffer.from("jürgen/1").toString("latin1") }, body: { metadata: { name: "one" }, data: { a: "b" } } });
  expect(body.metadata.managedFields[0].manager).toBe("jürgen");
});

test("the status that is applied to a group of pods itself is owned, though it stays as it was", () => {
  const of = (group: string, plural: string) => ownableFields({ row: { group, plural, subresources: [{ name: "status" }] } } as unknown as ServedResource, "");
  expect([of("scheduling.k8s.io", "podgroups"), of("apps", "daemonsets") === undefined]).toEqual([undefined, false]);
});
