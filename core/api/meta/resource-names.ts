/** What names of resources say. Source: kubernetes v1.36 pkg/apis/core/v1/helper/helpers.go */
import { qualifiedName } from "./names.ts";

const NATIVE_PREFIX = "kubernetes.io/";
const REQUESTS = "requests.";

export function isNativeResource(name: string): boolean { return !name.includes("/") || name.includes(NATIVE_PREFIX); }

/** vendor.com/thing, in no domain of Kubernetes' own, and so that quotas can name it, too. */
export function isExtendedResource(name: string): boolean {
  return !isNativeResource(name) && !name.startsWith(REQUESTS) && qualifiedName(`${REQUESTS}${name}`).length === 0;
}
