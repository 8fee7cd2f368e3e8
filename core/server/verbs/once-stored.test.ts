import { expect, test } from "vitest";
import { apiServer } from "../../../test/api-server.ts";

test("a claim is pending once it is stored, and not while plug-ins look at it", async () => {
  const seen: unknown[] = [];
  await using api = await apiServer({ validate: ({ object }) => void seen.push((object as { status?: unknown }).status) });
  const claim = { metadata: { name: "data" }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } };
  for (const query of [{ dryRun: "All" }, {}]) expect((await api.ask("POST", "/api/v1/namespaces/a/persistentvolumeclaims", { query, body: claim })).body.status).toEqual({ phase: "Pending" });
  expect(seen).toEqual([{}, {}]);
  expect((await api.ask("GET", "/api/v1/namespaces/a/persistentvolumeclaims/data")).body.status).toEqual({ phase: "Pending" });
});
