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

test("where the scheduler tells how it is", () => {
  const given = (...kubeSchedulerArg: string[]) => schedulerSetup({ schedulerConfig: undefined, kubeSchedulerArg }, systemClock).listening;
  expect(given()).toEqual({ address: "127.0.0.1", port: 10259 });
  expect(given("bind-address=0.0.0.0", "--secure-port=1234")).toEqual({ address: "0.0.0.0", port: 1234 });
  expect(() => given("bind-address=node-1")).toThrow('--kube-scheduler-arg bind-address must be an IP address, not "node-1"');
});
