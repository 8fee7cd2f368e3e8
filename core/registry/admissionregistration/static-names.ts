/** Names of configurations that come from files of the server. Source: kubernetes v1.36 pkg/apis/admissionregistration/validation/static_suffix.go */
import { goQuote } from "../../api/meta/go-quote.ts";

const SUFFIX = ".static.k8s.io";

export function* staticNameWarnings(name: string): Iterable<string> {
  if (name.endsWith(SUFFIX)) yield `metadata.name: names ending with ${goQuote(SUFFIX)} are reserved for static manifest-based configurations and cannot be managed via the API`;
}
