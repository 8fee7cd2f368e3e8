import { expect, test } from "vitest";
import type { ControllerRevision } from "../api/gen/apps.v1.ts";
import { byAge, templatePatch } from "./history.ts";
import { patchHash } from "./template-hash.ts";

test("a revision holds its template byte for byte as upstream's controllers write it", () => {
  const template = { metadata: { labels: { b: "2", a: "1" } }, spec: { restartPolicy: "Always" as const, containers: [{ name: "c", image: "i", args: ["x"], env: undefined }] } };
  expect(JSON.stringify(templatePatch(template))).toBe('{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"a":"1","b":"2"}},"spec":{"containers":[{"args":["x"],"image":"i","name":"c"}],"restartPolicy":"Always"}}}}');
});

test("the hash of a StatefulSet's revision is upstream's", () => {
  const container = { name: "c", image: "i:1", command: ["sh", "-c", "a <b && c"], imagePullPolicy: "IfNotPresent" as const, resources: {}, terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File" as const };
  const template = { metadata: { labels: { app: "a" } }, spec: { containers: [container], dnsPolicy: "ClusterFirst" as const, restartPolicy: "Always" as const, schedulerName: "default-scheduler", securityContext: {}, terminationGracePeriodSeconds: 30 } };
  expect(patchHash(templatePatch(template), 0)).toBe("5c8b8c7b88");
});

test("revisions of one number are told apart by their age, those of one second by their names, whatever the order they come in", () => {
  const revision = (name: string, revision: number | bigint, creationTimestamp: string) => ({ metadata: { name, creationTimestamp }, revision }) as ControllerRevision;
  const all = [revision("d", 1, "2026-01-01T00:00:05Z"), revision("c", 2, "2026-01-01T00:00:00Z"), revision("a", 2, "2026-01-01T00:00:01Z"), revision("b", 2, "2026-01-01T00:00:01Z"), revision("f", 2n ** 63n - 2n, "2026-01-01T00:00:05Z"), revision("e", 2n ** 63n - 1n, "2026-01-01T00:00:00Z")];
  for (const some of [all, all.toReversed()]) expect(some.toSorted(byAge)).toEqual(all);
});
