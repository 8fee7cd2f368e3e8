import { expect, test } from "vitest";
import { templatePatch } from "./history.ts";
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
