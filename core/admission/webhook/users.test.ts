import { expect, test } from "vitest";
import { authorizationOf, userFor, webhookKubeconfig } from "./users.ts";

const named = new Map(["h.example.com:8443", "h.example.com", "*.example.com", "*.example.com:9443", "hook.ns.svc", "*", "::1"].map((name) => [name, { token: name }]));

test.each([
  ["h.example.com:8443", "h.example.com:8443"], ["h.example.com:443", "h.example.com"], ["h.example.com:9443", "*.example.com:9443"], ["x.y.example.com:443", "*.example.com"],
  ["x.y.example.com:7443", "*"], ["hook.ns.svc:443", "hook.ns.svc"], ["[::1]:443", "::1"],
])("%s is asked as %s", (host, name) => expect(userFor({ named }, host)?.token).toBe(name));

test("a webhook for which nobody is named is asked as the file's current user, if there is one", () => {
  expect(userFor({ named: new Map(), current: { token: "c" } }, "h:443")).toEqual({ token: "c" });
  expect(userFor({ named: new Map() }, "h:443")).toBeUndefined();
});

test("a token goes before a password", () => {
  expect([authorizationOf({ token: "t", username: "u", password: "p" }), authorizationOf({ username: "u", password: "p" }), authorizationOf({ cert: "c", key: "k" })]).toEqual(["Bearer t", "Basic dTpw", undefined]);
});

test("the configuration names a file by its whole path", () => {
  const v1 = { apiVersion: "apiserver.config.k8s.io/v1", kind: "WebhookAdmissionConfiguration" };
  expect(webhookKubeconfig({ ...v1, kubeConfigFile: "/etc/hooks.yaml" })).toBe("/etc/hooks.yaml");
  expect(webhookKubeconfig({ apiVersion: "apiserver.config.k8s.io/v1alpha1", kind: "WebhookAdmission", kubeConfigFile: "/a" })).toBe("/a");
  expect(webhookKubeconfig(undefined)).toBeUndefined();
  expect(() => webhookKubeconfig({ ...v1, kubeConfigFile: "hooks.yaml" })).toThrow('kubeConfigFile: Invalid value: "hooks.yaml": must be an absolute file path');
  expect(() => webhookKubeconfig({ ...v1, kubeconfig: "/a" })).toThrow("kubeconfig");
});
