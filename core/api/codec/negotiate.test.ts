import { expect, test } from "vitest";
import { negotiateInput, negotiateOutput, negotiateStream } from "./negotiate.ts";

const KUBECTL_GET = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const METADATA = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

test.each([
  ["", "json"], ["*/*", "json"], ["application/*", "json"], ["application/yaml", "yaml"], ["application/vnd.kubernetes.protobuf,application/json", "protobuf"],
  ["application/json;q=0.5,application/yaml", "yaml"], ["text/html,application/xml;q=0.9,*/*;q=0.8", "json"], [KUBECTL_GET, "json Table v1"], [METADATA, "protobuf PartialObjectMetadata v1"],
  ["application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json;as=Table;g=meta.k8s.io;v=v1", "json Table v1"],
  ["application/json;as=Foo;g=meta.k8s.io;v=v1,application/yaml", "yaml"], ["application/json;pretty=1", "json pretty"],
  ["*/*, application/yaml", "yaml"], ["application/*;q=0.9, application/vnd.kubernetes.protobuf;q=0.1", "protobuf"], ["*/*;as=Table;g=meta.k8s.io;v=v1, application/json", "json"],
  ["application/yaml;q=x, application/json;q=0.1", "json"], ["application/yaml;g=;as=", "yaml"], ["application/yaml/x, application/json;as=Table=a", "json"], ['application/json;as="Table";g=meta.k8s.io;v=v1, application/yaml', "yaml"],
])("Accept: %s → %s", (accept, expected) => {
  const { encoding, convert, pretty } = negotiateOutput({ accept });
  expect([encoding, convert?.kind, convert?.version, pretty ? "pretty" : ""].filter(Boolean).join(" ")).toBe(expected);
});

test("what cannot be had is a 406 that lists what can", () => {
  expect(() => negotiateOutput({ accept: "text/plain" })).toThrow("only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf");
  expect(() => negotiateOutput({ accept: "application/vnd.kubernetes.protobuf", custom: true })).toThrow("only the following media types");
  expect(negotiateOutput({ accept: METADATA, custom: true }).encoding).toBe("protobuf"); // the metadata of a custom resource has a message
  expect(() => negotiateStream({ accept: "application/yaml" })).toThrow("only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch");
});

test("watches name their stream, except in JSON", () => {
  expect(negotiateStream({ accept: "application/vnd.kubernetes.protobuf;stream=watch" }).contentType).toBe("application/vnd.kubernetes.protobuf;stream=watch");
  expect(negotiateStream({ accept: "application/json;stream=watch" }).contentType).toBe("application/json");
});

test("people get it pretty", () => {
  const pretty = (userAgent: string, value?: string): boolean => negotiateOutput({ accept: "", userAgent, pretty: value }).pretty;
  expect([pretty("curl/8"), pretty("curl/8", "false"), pretty("kubectl/v1.36"), pretty("kubectl/v1.36", "true"), pretty("Mozilla/5.0 (X11)")]).toEqual([true, false, false, true, true]);
});

test("the Content-Type chooses the decoder", () => {
  expect([negotiateInput(undefined), negotiateInput("application/json; charset=utf-8"), negotiateInput("application/yaml"), negotiateInput("application/vnd.kubernetes.protobuf")]).toEqual(["json", "json", "yaml", "protobuf"]);
  for (const read of ["application/json; charset=utf-8", "application/json;", 'Application/JSON;a="x; y";b=c', "application/json;a=b;A=b", "application/json ; charset = utf-8 ; "]) expect(negotiateInput(read)).toBe("json");
  for (const unread of ["application/json;foo", "application/json;;", "application/json;a=", 'application/json;a="x', "application/json;a=b;a=c"]) expect(() => negotiateInput(unread)).toThrow("unknown format");
  expect(() => negotiateInput("text/plain")).toThrow("the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf");
});
