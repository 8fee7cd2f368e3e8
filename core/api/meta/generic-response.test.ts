import { expect, test } from "vitest";
import { genericResponse } from "./generic-response.ts";

const asked = { verb: "GET", resource: { group: "custom.metrics.k8s.io", resource: "pods" }, name: "*" };

test.each<[status: number, text: string, about: typeof asked | undefined, reason: string, message: string]>([
  [503, "service unavailable\n", asked, "ServiceUnavailable", "the server is currently unable to handle the request (get pods.custom.metrics.k8s.io *)"],
  [503, "", { ...asked, resource: { group: "metrics.k8s.io", resource: "pods" }, name: "" }, "ServiceUnavailable", "the server is currently unable to handle the request (get pods.metrics.k8s.io)"],
  [404, "404 page not found", { ...asked, resource: { group: "", resource: "nodes" }, name: "n1" }, "NotFound", "the server could not find the requested resource (get nodes n1)"],
  [403, "who are you", undefined, "Forbidden", "who are you"],
  [502, 'no "route"', undefined, "InternalError", 'an error on the server ("no \\"route\\"") has prevented the request from succeeding'],
  [418, "teapot", undefined, "", "the server responded with the status code 418 but did not return more information"],
])("%i %j", (status, text, about, reason, message) => {
  const error = genericResponse(status, text, about);
  expect([error.status.code, error.status.reason ?? "", error.message]).toEqual([status, reason, message]);
  expect(error.status.details?.causes).toEqual([{ reason: "UnexpectedServerResponse", message: text.trim() }]);
});
