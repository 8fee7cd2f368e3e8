import { expect, test } from "vitest";
import { type Clock, systemClock } from "../../lifecycle/clock.ts";
import type { StatusError } from "../meta/status-error.ts";
import { zpages } from "./zpages.ts";

const pages = zpages({ component: "apiserver", flags: { v: "2" }, version: { major: "1", minor: "36", gitVersion: "v1.36.0+own", goVersion: "x" }, paths: ["/flagz", "/statusz"], clock: systemClock });

test.each(["json", "yaml"])("who asks for a page by name is told in %s which one it is", (encoding) => {
  for (const [path, kind] of [["/flagz", "Flagz"], ["/statusz", "Statusz"]] as const)
    expect(pages(path, `application/${encoding};v=v1beta1;g=config.k8s.io;as=${kind}`)!.contentType).toBe(`application/${encoding};g=config.k8s.io;v=v1beta1;as=${kind}`);
});

test("who asks for an old version of a page is warned", () => {
  const warningOf = (path: string, kind: string, version: string) => pages(path, `application/json;v=${version};g=config.k8s.io;as=${kind}`)!.warning;
  expect(["v1alpha1", "v1beta1"].map((version) => warningOf("/flagz", "Flagz", version))).toEqual(['299 - "This version of the flagz endpoint is deprecated. Please use a newer version."', undefined]);
  expect(warningOf("/statusz", "Statusz", "v1alpha1")).toBe('299 - "This version of the statusz endpoint is deprecated. Please use a newer version."');
});

test("the time of the start and the versions stand as Go writes them", () => {
  const clock = { nowMs: () => Date.UTC(2026, 10, 7, 1, 2, 3), uptimeMs: () => 0 } as Clock;
  const statusz = zpages({ component: "kubelet", flags: {}, version: { major: "1", minor: "36", gitVersion: "v1.36.0+own", goVersion: "x" }, paths: [], clock });
  expect(statusz("/statusz", undefined)!.body).toContain("Started: Sat Nov  7 01:02:03 UTC 2026\nUp: 0 hr 00 min 00 sec\nGo version: x\nBinary version: 1.36.0\nEmulation version: 1.36\n");
  expect(Buffer.from(statusz("/statusz", "application/json;v=v1beta1;g=config.k8s.io;as=Statusz")!.body).toString()).toContain('"binaryVersion":"1.36.0","emulationVersion":"1.36"');
});

test("another form is not to be had, and nothing more is said of that", () => {
  try {
    pages("/flagz", "application/json");
    expect.unreachable();
  } catch (error) {
    expect((error as StatusError).status).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "only the following media types are accepted: application/json, application/yaml, text/plain", reason: "NotAcceptable", code: 406 });
  }
});
