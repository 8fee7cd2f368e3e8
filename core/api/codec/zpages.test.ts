import { expect, test } from "vitest";
import { systemClock } from "../../lifecycle/clock.ts";
import type { StatusError } from "../meta/status-error.ts";
import { zpages } from "./zpages.ts";

const pages = zpages({ component: "apiserver", flags: { v: "2" }, version: { major: "1", minor: "36", gitVersion: "v1.36.2+coracle.1", goVersion: "x" }, paths: ["/flagz", "/statusz"], clock: systemClock });

test.each(["json", "yaml"])("who asks for a page by name is told in %s which one it is", (encoding) => {
  for (const [path, kind] of [["/flagz", "Flagz"], ["/statusz", "Statusz"]] as const)
    expect(pages(path, `application/${encoding};v=v1beta1;g=config.k8s.io;as=${kind}`)!.contentType).toBe(`application/${encoding};g=config.k8s.io;v=v1beta1;as=${kind}`);
});

test("another form is not to be had, and nothing more is said of that", () => {
  try {
    pages("/flagz", "application/json");
    expect.unreachable();
  } catch (error) {
    expect((error as StatusError).status).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "only the following media types are accepted: application/json, application/yaml, text/plain", reason: "NotAcceptable", code: 406 });
  }
});

test("for people: since when, as Go writes a date, and the version with its patch", () => {
  const at = Date.UTC(2026, 10, 7, 21, 17, 29);
  const told = zpages({ component: "kube-scheduler", flags: {}, version: { major: "1", minor: "36", gitVersion: "v1.36.2+coracle.1", goVersion: "x" }, paths: ["/healthz", "/statusz"], clock: { ...systemClock, nowMs: () => at, uptimeMs: () => 0 } })("/statusz", undefined)!;
  expect(String(told.body).split("\n").slice(4)).toEqual(["Started: Sat Nov  7 21:17:29 UTC 2026", "Up: 0 hr 00 min 00 sec", "Go version: x", "Binary version: 1.36.2", "Emulation version: 1.36", "Paths: /healthz /statusz", ""]);
});
