import { expect, test } from "vitest";
import { apiServerArgs } from "./apiserver-args.ts";

test("settings under upstream's names, with or without dashes", () => {
  const args = apiServerArgs(["enable-admission-plugins=A,B", "--enable-admission-plugins=C", "default-not-ready-toleration-seconds=30"]);
  expect([args.list("enable-admission-plugins"), args.list("disable-admission-plugins"), args.text("admission-control-config-file")]).toEqual([["A", "B", "C"], [], undefined]);
  expect(args.integer("default-not-ready-toleration-seconds")).toBe(30);
});

test.each([
  ["no-such=1", "not a setting we have; there are enable-admission-plugins"], ["Default=1", "not a setting we have"],
])("%s: %s", (text, told) => expect(() => apiServerArgs([text])).toThrow(told));

test("values of other types are refused", () => {
  const args = apiServerArgs(["default-not-ready-toleration-seconds=1m30s"]);
  expect(() => args.integer("default-not-ready-toleration-seconds")).toThrow('must be a whole number, not "1m30s"');
  expect(() => args.boolean("default-not-ready-toleration-seconds", true)).toThrow("must be true or false");
  expect(args.durationMs("default-not-ready-toleration-seconds")).toBe(90_000);
});

test("of upstream's settings that are none here, those that say what is so are taken, the others are refused with what to do instead", () => {
  expect(() => apiServerArgs(["profiling=false", "allow-privileged", "storage-backend=etcd3", "request-timeout=1m0s"])).not.toThrow();
  for (const [text, told] of [["etcd-servers=https://a:2379", "give --datastore-endpoint"], ["secure-port=443", "give --https-listen-port instead"], ["allow-privileged=false", "that is how it is: only true"], ["emulated-version=1.35", "is v1.36 and emulates no other"]] as const)
    expect(() => apiServerArgs([text])).toThrow(`--kube-apiserver-arg ${text}: ${told.startsWith("is") ? `this server ${told}` : told}`);
});
