/**
 * A name as one part of a path. One that is none is refused before anything is asked: the server takes an escaped slash for a slash, so that a name with one would have it do something
 * else in the caller's name, who may do more than whoever wrote the name.
 *
 * Source: kubernetes v1.36 client-go/rest/request.go
 */
import { goQuote } from "../api/meta/go-quote.ts";
import { pathSegmentName } from "../api/meta/names.ts";

/** Throws an Error. */
export function pathPart(name: string, what: "resource name" | "namespace" | "metric name" = "resource name"): string {
  if (name === "") throw new Error(`${what} may not be empty`);
  const problems = pathSegmentName(name);
  if (problems.length > 0) throw new Error(`invalid ${what} ${goQuote(name)}: [${problems.join(" ")}]`);
  return encodeURIComponent(name);
}
