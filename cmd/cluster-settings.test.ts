import { expect, test } from "vitest";
import { isSameSetting } from "./cluster-settings.ts";

test("a setting that an older server has told as its owner wrote it is no other one; families in another order are", () => {
  const same = (name: string, before: string, now: string): boolean => isSameSetting({ name, before, now });
  expect([same("cluster-cidr", "10.42.0.9/16, FD42:0::/48", "10.42.0.0/16,fd42::/48"), same("disable", "dns,ingress", "ingress,dns")]).toEqual([true, true]);
  expect([same("cluster-cidr", "fd42::/48,10.42.0.0/16", "10.42.0.0/16,fd42::/48"), same("disable", "dns", ""), same("cluster-domain", "a.b", "b.a")]).toEqual([false, false, false]);
});
