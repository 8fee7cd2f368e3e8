import { expect, test } from "vitest";
import type { PodTemplateSpec } from "../core/api/gen/core.v1.ts";
import { completeTemplate } from "./complete-template.ts";

const bare: PodTemplateSpec = { metadata: { labels: { app: "db" } }, spec: { containers: [{ name: "c", image: "db:1", ports: [{ containerPort: 80 }] }] } } as PodTemplateSpec;

test("a template gets its defaults, and one that has them stays as it is; what is passed stays as it was", () => {
  const before = structuredClone(bare);
  const complete = completeTemplate(bare);
  expect(complete).toMatchObject({ metadata: { labels: { app: "db" } }, spec: { restartPolicy: "Always", terminationGracePeriodSeconds: 30, dnsPolicy: "ClusterFirst", schedulerName: "default-scheduler", containers: [{ imagePullPolicy: "IfNotPresent", ports: [{ protocol: "TCP" }] }] } });
  expect(completeTemplate(complete)).toEqual(complete);
  expect(bare).toEqual(before);
});
