import { expect, test } from "vitest";
import { type Clock, systemClock } from "../../lifecycle/clock.ts";
import type { StatusError } from "../meta/status-error.ts";
import { zpages } from "./zpages.ts";

const of = { component: "apiserver", flags: { v: "2" }, version: { major: "1", minor: "36", gitVersion: "v1.36.0+own", goVersion: "x" }, paths: ["/flagz", "/statusz"], clock: systemClock };
const pages = zpages(of), withCbor = zpages({ ...of, cbor: true });
const JSON_PAGE = "application/json;v=v1beta1;g=config.k8s.io;as=Flagz";

test.each(["json", "yaml"])("who asks for a page by name is told in %s which one it is", (encoding) => {
  for (const [path, kind] of [["/flagz", "Flagz"], ["/statusz", "Statusz"]] as const)
    expect(pages(path, { accept: `application/${encoding};v=v1beta1;g=config.k8s.io;as=${kind}` })!.contentType).toBe(`application/${encoding};g=config.k8s.io;v=v1beta1;as=${kind}`);
});

test("who asks for an old version of a page is warned", () => {
  const warningOf = (path: string, kind: string, version: string) => pages(path, { accept: `application/json;v=${version};g=config.k8s.io;as=${kind}` })!.headers["warning"];
  expect(["v1alpha1", "v1beta1"].map((version) => warningOf("/flagz", "Flagz", version))).toEqual(['299 - "This version of the flagz endpoint is deprecated. Please use a newer version."', undefined]);
  expect(warningOf("/statusz", "Statusz", "v1alpha1")).toBe('299 - "This version of the statusz endpoint is deprecated. Please use a newer version."');
});

test("the time of the start and the versions stand as Go writes them", () => {
  const clock = { nowMs: () => Date.UTC(2026, 10, 7, 1, 2, 3), uptimeMs: () => 0 } as Clock;
  const statusz = zpages({ component: "kubelet", flags: {}, version: { major: "1", minor: "36", gitVersion: "v1.36.0+own", goVersion: "x" }, paths: [], clock });
  expect(statusz("/statusz", { accept: undefined })!.body).toContain("Started: Sat Nov  7 01:02:03 UTC 2026\nUp: 0 hr 00 min 00 sec\nGo version: x\nBinary version: 1.36.0\nEmulation version: 1.36\n");
  expect(Buffer.from(statusz("/statusz", { accept: "application/json;v=v1beta1;g=config.k8s.io;as=Statusz" })!.body).toString()).toContain('"binaryVersion":"1.36.0","emulationVersion":"1.36"');
});

test("another form is not to be had, and nothing more is said of that", () => {
  try {
    pages("/flagz", { accept: "application/json" });
    expect.unreachable();
  } catch (error) {
    expect((error as StatusError).status).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "only the following media types are accepted: application/json, application/yaml, text/plain", reason: "NotAcceptable", code: 406 });
  }
});

test.each([
  [`${JSON_PAGE},*/*`, "application/json"], [`*/*,${JSON_PAGE}`, "application/json"], [`${JSON_PAGE};q=0.5,text/plain`, "text/plain"], ["application/json;v=foo;g=config.k8s.io;as=Flagz,*/*", "text/plain"], ["text/*", "text/plain"], ["*", "text/plain"],
  [`${JSON_PAGE};as=Statusz`, undefined], [`${JSON_PAGE};stream=watch`, undefined], [`${JSON_PAGE};sv=v1`, undefined], ["text/plain;v=v1beta1;g=config.k8s.io;as=Flagz", undefined], ["application/*;v=v1beta1;g=config.k8s.io;as=Flagz", "application/json"],
])("of %s the clause that is liked best of those that can be met is met", (accept, expected) => {
  const answer = (): string => pages("/flagz", { accept })!.contentType.split(";")[0]!;
  if (expected === undefined) expect(answer).toThrow("only the following media types are accepted: application/json, application/yaml, text/plain");
  else expect(answer()).toBe(expected);
});

test("CBOR can be had where the server speaks it, and is then among what is accepted", () => {
  const accept = JSON_PAGE.replace("json", "cbor");
  expect(withCbor("/flagz", { accept })!.contentType).toBe("application/cbor;g=config.k8s.io;v=v1beta1;as=Flagz");
  expect(() => pages("/flagz", { accept })).toThrow(/text\/plain$/);
  expect(() => withCbor("/flagz", { accept: "application/xml" })).toThrow("only the following media types are accepted: application/json, application/yaml, text/plain, application/cbor");
});

test("people are given lines", () => {
  const linesFor = (asked: object): number => Buffer.from(pages("/flagz", { accept: JSON_PAGE, ...asked })!.body).toString().trimEnd().split("\n").length;
  expect([linesFor({}), linesFor({ userAgent: "curl/8.5.0" }), linesFor({ pretty: "true" }), linesFor({ userAgent: "curl/8.5.0", pretty: "0" }), linesFor({ accept: `${JSON_PAGE};pretty=1` })].map((lines) => lines > 1)).toEqual([false, true, true, false, true]);
});
