import { expect, test } from "vitest";
import { created, type Given, updated } from "../../test/rehearse.ts";
import type { PodTemplateSpec } from "../api/gen/core.v1.ts";
import { daemonSets } from "./apps/daemon-set.ts";
import { deployments } from "./apps/deployment.ts";
import { replicaSets } from "./apps/replica-set.ts";
import { statefulSetDefinition } from "./apps/stateful-set.ts";
import { cronJobs } from "./batch/cron-job.ts";
import { jobs } from "./batch/job.ts";
import { podTemplates } from "./core/pod-template.ts";
import { pods } from "./core/pod/pod.ts";
import { replicationControllers } from "./core/replication-controller.ts";
import type { Resource } from "./generic/resource.ts";

type Wrap = (template: Given) => Given;
const labels = { app: "a" };
const selected: Wrap = (template) => ({ spec: { selector: { matchLabels: labels }, template } });
const template = (lifecycle?: object): Given => ({ metadata: { labels }, spec: { containers: [{ name: "c", image: "i", ...(lifecycle && { lifecycle }) }] } });
const SIGNAL = { stopSignal: "SIGUSR1" } as const;

test.each<[string, Resource<never>, Wrap]>([
  ["a Pod", pods as never, (given) => given], ["a PodTemplate", podTemplates as never, (given) => ({ template: given })], ["a ReplicationController", replicationControllers as never, (given) => ({ spec: { selector: labels, template: given } })],
  ["a Deployment", deployments as never, selected], ["a ReplicaSet", replicaSets as never, selected], ["a DaemonSet", daemonSets as never, selected], ["a StatefulSet", statefulSetDefinition({ maxUnavailable: false }) as never, selected],
  ["a Job", jobs as never, (given) => ({ spec: { template: given } })], ["a CronJob", cronJobs as never, (given) => ({ spec: { schedule: "* * * * *", jobTemplate: { spec: { template: given } } } })],
])("%s does not take a field whose gate is off, neither new nor later; one that has it keeps it", (_, definition, wrap) => {
  const lifecycleOf = (object: unknown): unknown => templatesIn(object)[0]!.spec!.containers[0]!.lifecycle;
  expect(lifecycleOf(created(definition, wrap(template(SIGNAL))).object)).toBeUndefined();
  const old = created(definition, wrap(template())).object;
  expect(lifecycleOf(updated(definition, old, wrap(template(SIGNAL))).object)).toBeUndefined();
  const before: never = structuredClone(old);
  templatesIn(before)[0]!.spec!.containers[0]!.lifecycle = SIGNAL; // of a time when it was on
  expect(lifecycleOf(updated(definition, before, wrap(template({ stopSignal: "SIGUSR2" }))).object)).toEqual({ stopSignal: "SIGUSR2" });
});

/** Wherever it is in an object. */
function templatesIn(value: unknown): PodTemplateSpec[] {
  if (typeof value !== "object" || value === null) return [];
  return Array.isArray((value as PodTemplateSpec).spec?.containers) ? [value as PodTemplateSpec] : Object.values(value).flatMap(templatesIn);
}
