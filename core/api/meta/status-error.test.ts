import { expect, test } from "vitest";
import { duplicate, forbidden as forbiddenField, invalid as invalidField, notSupported, OMIT_VALUE, required, tooLong, tooMany } from "./field-error.ts";
import { goQuote } from "./go-quote.ts";
import * as status from "./status-error.ts";

const PODS = { group: "", resource: "pods" };
const DEPLOYMENTS_KIND = { group: "apps", kind: "Deployment" };
const DEPLOYMENTS = { group: "apps", resource: "deployments" };

test.each([
  [status.notFound(PODS, "x"), 404, `pods "x" not found`],
  [status.notFound(DEPLOYMENTS, "x"), 404, `deployments.apps "x" not found`],
  [status.alreadyExists(PODS, "x"), 409, `pods "x" already exists`],
  [status.conflict(PODS, "x"), 409, `Operation cannot be fulfilled on pods "x": the object has been modified; please apply your changes to the latest version and try again`],
  [status.notAllowed({ user: "u", verb: "get", resource: "pods", namespace: "ns", name: "x" }), 403, `pods "x" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "ns"`],
  [status.notAllowed({ user: "u", verb: "list", group: "apps", resource: "deployments", subresource: "scale" }, "RBAC: x"), 403,
    `deployments.apps is forbidden: User "u" cannot list resource "deployments/scale" in API group "apps" at the cluster scope: RBAC: x`],
  [status.notAllowed({ user: "u", verb: "get", path: "/<x>" }), 403, `forbidden: User "u" cannot get path "/&lt;x&gt;"`],
  [status.methodNotSupported(PODS, "patch"), 405, `patch is not supported on resources of kind "pods"`],
  [status.resourceVersionTooOld(5, 9), 410, "too old resource version: 5 (9)"],
  [status.resourceVersionTooLarge(9, 5), 504, "Timeout: Too large resource version: 9, current: 5"],
  [status.bodyTooLarge(), 413, "Request entity too large: limit is 3145728"],
  [status.unsupportedMediaType(["application/json", "application/yaml"]), 415, "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"],
  [status.internalError(new Error("boom")), 500, "Internal error occurred: boom"],
])("%s", (error, code, message) => {
  expect([error.code, error.message, error.status.message]).toEqual([code, message, message]);
});

test("an invalid object names every field and repeats none", () => {
  const errors = [
    invalidField("spec.replicas", -1, "must be greater than or equal to 0"), required("spec.selector"), required("spec.selector"),
    notSupported("spec.type", "x", ["A", "B"]), forbiddenField("spec.a", "no"), tooLong("spec.b", 1), tooMany("spec.c", 3, 2), duplicate("spec.d[1]", { name: "<a>" }),
    invalidField("spec.e", OMIT_VALUE, "hidden"),
  ];
  const error = status.invalid({ group: "apps", kind: "Deployment" }, "web", errors);
  expect(error.message).toBe(`Deployment.apps "web" is invalid: [spec.replicas: Invalid value: -1: must be greater than or equal to 0, spec.selector: Required value, ` +
    `spec.type: Unsupported value: "x": supported values: "A", "B", spec.a: Forbidden: no, spec.b: Too long: may not be more than 1 byte, ` +
    `spec.c: Too many: 3: must have at most 2 items, spec.d[1]: Duplicate value: {"name":"\\u003ca\\u003e"}, spec.e: Invalid value: hidden]`);
  expect(error.status.details).toMatchObject({ group: "apps", kind: "Deployment", name: "web" });
  expect(error.status.details?.causes?.[0]).toEqual({ reason: "FieldValueInvalid", message: "Invalid value: -1: must be greater than or equal to 0", field: "spec.replicas" });
  expect(error.status.details?.causes).toHaveLength(errors.length);
});

test("errors that each show all of a large list are told as far as an answer holds them", () => {
  const owners = Array.from({ length: 3000 }, (_, i) => ({ name: `o${i}`, text: "x".repeat(300) }));
  const { details, message = "" } = status.invalid(DEPLOYMENTS_KIND, "web", owners.map(({ name }) => invalidField("metadata.ownerReferences", owners, `not ${name}`))).status;
  expect(details?.causes?.length).toBeLessThan(20);
  expect(details?.causes?.[1]?.message?.endsWith("}]: not o1")).toBe(true);
  expect(message.length).toBeLessThan(20 * 2 ** 20);
});

test("an answer is logged by what it says, once, and without the place in our code that read it", () => {
  expect(status.notFound(PODS, "x").logFields()).toEqual({ message: 'pods "x" not found', code: 404, reason: "NotFound", details: { name: "x", kind: "pods" } });
});

test("the reason is found through causes, and by code when a Status has none", () => {
  const wrapped = new Error("sync failed", { cause: status.conflict(PODS, "x") });
  expect([status.isConflict(wrapped), status.isNotFound(wrapped), status.statusOf(new Error("x")).code]).toEqual([true, false, 500]);
  expect(status.isNotFound(status.statusError({ code: 404, reason: "", message: "" }))).toBe(true);
});

test.each([["a\"b\\c", String.raw`"a\"b\\c"`], ["\n\x00\x7f", String.raw`"\n\x00\x7f"`], ["é\u200b\u{1f600}\u{e0001}", '"é\\u200b\u{1f600}\\U000e0001"']])("Go quotes %j as %s", (text, quoted) => {
  expect(goQuote(text)).toBe(quoted);
});
