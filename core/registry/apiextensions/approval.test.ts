import { expect, test } from "vitest";
import type { CustomResourceDefinition } from "../../api/gen/apiextensions.v1.ts";
import { approvalCondition } from "./approval.ts";

test.each([
  ["https://github.com/kubernetes/enhancements/pull/1111", "ApprovedAnnotation"], ["git+ssh://host?x", "ApprovedAnnotation"], ["unapproved, for now", "UnapprovedAnnotation"], ["", "MissingAnnotation"],
  ["yes", "InvalidAnnotation"], ["http:///path", "InvalidAnnotation"], ["https://?q", "InvalidAnnotation"], ["https://a b/", "InvalidAnnotation"], ["a_b://host", "InvalidAnnotation"],
])("an annotation %j: %s", (text, reason) => {
  const crd = { metadata: { annotations: { "api-approved.kubernetes.io": text } }, spec: { group: "x.k8s.io" } } as unknown as CustomResourceDefinition;
  expect(approvalCondition(crd)?.reason).toBe(reason);
});
