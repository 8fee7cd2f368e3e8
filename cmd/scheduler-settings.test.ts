import { expect, test } from "vitest";
import { systemClock } from "../core/lifecycle/clock.ts";
import { schedulerSetup } from "./scheduler-settings.ts";

test.each([
  [{ schedulerConfig: "/none.yaml", kubeSchedulerArg: [] }, "--scheduler-config /none.yaml: no such file"],
  [{ schedulerConfig: undefined, kubeSchedulerArg: ["config=/none.yaml"] }, "--kube-scheduler-arg config /none.yaml: no such file"],
  [{ schedulerConfig: "package.json", kubeSchedulerArg: ["config=/none.yaml"] }, "--scheduler-config package.json: "],
])("a configuration that cannot be used is named by its setting: %j", (settings, message) => {
  expect(() => schedulerSetup(settings, systemClock)).toThrow(message);
});
