/** A plug-in's no: `pods "web" is forbidden: <detail>`. Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/admission/errors.go */
import { errorText } from "../api/meta/error-text.ts";
import { forbidden, isForbidden, type StatusCause, type StatusError } from "../api/meta/status-error.ts";
import type { AdmissionRequest } from "./plugin.ts";

/** `detail`: a text, or what went wrong; a 403 is passed on as it is. */
export function refusal({ group, resource, name, object }: AdmissionRequest, detail: unknown, causes: readonly StatusCause[] = []): StatusError {
  if (isForbidden(detail)) return detail as StatusError;
  const told = errorText(detail);
  return forbidden({ group, resource }, name || object?.metadata?.name || object?.metadata?.generateName || "Unknown", told, causes);
}

export function isResource({ group, resource, subresource }: AdmissionRequest, wanted: string, wantedSubresource = ""): boolean {
  return subresource === wantedSubresource && (group === "" ? resource : `${resource}.${group}`) === wanted;
}

/** Whether two values are the same to the API: members in any order, absent the same as null, "", 0, false or empty, except in labels and annotations. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (isNothing(a) || isNothing(b)) return isNothing(a) && isNothing(b);
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => sameValue(item, b[i]));
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return [...new Set([...Object.keys(left), ...Object.keys(right)])].every((key) => (
    key === "labels" || key === "annotations" ? sameStrings(left[key] as StringMap, right[key] as StringMap) : sameValue(left[key], right[key])
  ));
}

type StringMap = Readonly<Record<string, string>> | undefined;

/** Labels and annotations: an empty value is a value. */
export function sameStrings(a: StringMap, b: StringMap): boolean {
  const [left, right] = [a ?? {}, b ?? {}];
  return Object.keys(left).length === Object.keys(right).length && Object.entries(left).every(([key, value]) => Object.hasOwn(right, key) && right[key] === value);
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null || value === "" || value === 0 || value === false || (Array.isArray(value) ? value.length === 0 : typeof value === "object" && Object.keys(value).length === 0);
}
