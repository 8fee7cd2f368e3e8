import { expect, test } from "vitest";
import { controllerSettings } from "./controller-settings.ts";

test("settings of the controllers have upstream's names; the last one counts", () => {
  expect(controllerSettings([])).toEqual({});
  expect(controllerSettings(["node-monitor-grace-period=1m30s", "--terminated-pod-gc-threshold=7", "terminated-pod-gc-threshold=-1", "disable-force-detach-on-timeout"])).toEqual({ nodeGraceMs: 90_000, terminatedPodsMax: -1, forceDetach: false });
  expect(controllerSettings(["disable-force-detach-on-timeout=false"])).toEqual({ forceDetach: true });
});

test.each([
  ["node-monitor-grace-period=50", 'must be a duration such as 50s, not "50"'], ["node-monitor-grace-period=0s", "must be a duration"], ["terminated-pod-gc-threshold=many", "must be a whole number"],
  ["disable-force-detach-on-timeout=no", "must be true or false"], ["make-coffee=true", "not a setting we have; there are node-monitor-grace-period"], ["toString=1", "not a setting we have"],
])("--kube-controller-manager-arg %s is refused", (text, why) => {
  expect(() => controllerSettings([text])).toThrow(why);
});
