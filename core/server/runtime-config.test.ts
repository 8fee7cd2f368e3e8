import { expect, test } from "vitest";
import { runtimeConfigProblem } from "./runtime-config.ts";

test.each<[string, string | undefined]>([
  ["v1", undefined], ["batch/v1=true", undefined], ["api/ga=true", undefined], ["api/beta=false", undefined], ["storage.k8s.io/v1beta1=false", undefined], ["apps/v1/deployments=true", undefined],
  ["batch/v1=false", "batch/v1 is served by v1.36 by default, and cannot be switched off"],
  ["resource.k8s.io/v1beta2=true", "resource.k8s.io/v1beta2 is not served by v1.36 by default, and cannot be switched on"],
  ["api/all=true", "api/all=true: the group versions served are those of v1.36's defaults, and cannot be changed"],
  ["nothing.example.com/v1=true", "unknown api groups nothing.example.com/v1"],
  ["batch/v1=maybe", 'invalid value of batch/v1: strconv.ParseBool: parsing "maybe": invalid syntax'],
])("%s: %s", (text, problem) => expect(runtimeConfigProblem(text)).toBe(problem));
