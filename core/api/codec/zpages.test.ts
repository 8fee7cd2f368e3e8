import { expect, test } from "vitest";
import { systemClock } from "../../lifecycle/clock.ts";
import type { StatusError } from "../meta/status-error.ts";
import { zpages } from "./zpages.ts";

const pages = zpages({ component: "apiserver", flags: { v: "2" }, version: { major: "1", minor: "36", goVersion: "x" }, paths: ["/flagz", "/statusz"], clock: systemClock });

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
