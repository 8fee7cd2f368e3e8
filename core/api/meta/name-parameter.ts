/** A name that something is asked for by, as upstream's storage takes it. Source: kubernetes v1.36 apiserver/pkg/registry/generic/registry/store.go NoNamespaceKeyFunc */
import { goQuote } from "./go-quote.ts";
import { pathSegmentName } from "./names.ts";
import { badRequest } from "./status-error.ts";

/** Throws a StatusError. */
export function checkNameParameter(name: string): void {
  if (name === "") throw badRequest("Name parameter required.");
  const problems = pathSegmentName(name);
  if (problems.length > 0) throw badRequest(`Name parameter invalid: ${goQuote(name)}: ${problems.join(";")}`);
}
