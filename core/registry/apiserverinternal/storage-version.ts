/**
 * StorageVersion (internal.apiserver.k8s.io/v1alpha1): in which version each API server would store a resource. Servers tell where that is switched on (core/controllers/storageversion).
 *
 * Source: kubernetes v1.36 pkg/registry/apiserverinternal/storageversion/strategy.go, pkg/apis/apiserverinternal/validation/validation.go
 */
import type { ServerStorageVersion, StorageVersion, StorageVersionCondition, StorageVersionStatus } from "../../api/gen/apiserverinternal.v1alpha1.ts";
import { child, duplicate, type FieldError, index, invalid, required } from "../../api/meta/field-error.ts";
import { repeats } from "../../api/meta/linear.ts";
import { DNS1035_LABEL, dns1035Label, dns1123Subdomain, EMPTY_MESSAGE, regexMessage } from "../../api/meta/names.ts";
import { isQualifiedName, problems } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";

const VERSION_MESSAGE = regexMessage(
  "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  DNS1035_LABEL, "my-name", "abc-123",
);

export const storageVersions = defineResource<StorageVersion>({
  group: "internal.apiserver.k8s.io", version: "v1alpha1", kind: "StorageVersion", plural: "storageversions",
  generation: false, unconditionalUpdate: false,
  *validateName(name) {
    const at = name.lastIndexOf(".");
    if (at < 0) { yield "name must be in the form of <group>.<resource>"; return; }
    for (const problem of dns1123Subdomain(name.slice(0, at))) yield `the group segment ${problem}`;
    for (const problem of dns1035Label(name.slice(at + 1))) yield `the resource segment ${problem}`;
  },
  subresources: { status: statusPart<StorageVersion>({ keepsMetadata: true, *validate({ status }) { if (status) yield* validateStatus("status", status); } }) },
});

function* validateStatus(path: string, { storageVersions: servers = [], commonEncodingVersion: common, conditions = [] }: Readonly<StorageVersionStatus>): Iterable<FieldError> {
  const cameBefore = repeats<string | undefined>();
  for (const [i, server] of servers.entries()) {
    const at = index(child(path, "storageVersions"), i);
    if (cameBefore(server.apiServerID)) yield duplicate(child(at, "apiServerID"), server.apiServerID ?? "");
    yield* validateServer(at, server);
  }
  const encodings = new Set(servers.map(({ encodingVersion = "" }) => encodingVersion));
  const agreed = encodings.size === 1 ? [...encodings][0] : undefined;
  const at = child(path, "commonEncodingVersion");
  if (agreed === undefined) { if (common !== undefined) yield invalid(at, common, "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet"); }
  else if (common === undefined) yield invalid(at, null, `the common encoding version is ${agreed}`);
  else if (common !== agreed) yield invalid(at, common, `the actual common encoding version is ${agreed}`);
  const lastOf = new Map<string | undefined, number>();
  for (const [i, condition] of conditions.entries()) {
    yield* validateCondition(index(path, i), condition, lastOf.get(condition.type) ?? -1);
    lastOf.set(condition.type, i);
  }
}

function* validateServer(path: string, { apiServerID = "", encodingVersion = "", decodableVersions: decodable, servedVersions: served = [] }: ServerStorageVersion): Iterable<FieldError> {
  yield* problems(child(path, "apiServerID"), apiServerID, dns1123Subdomain(apiServerID));
  const check = function* (at: string, version: string): Iterable<FieldError> {
    const found = apiVersionProblems(version);
    if (found.length > 0) yield invalid(at, version, found.join(","));
  };
  yield* check(child(path, "encodingVersion"), encodingVersion);
  for (const [i, version] of (decodable ?? []).entries()) yield* check(index(child(path, "decodableVersions"), i), version);
  if (!decodable?.includes(encodingVersion)) yield invalid(child(path, "decodableVersions"), decodable ?? null, `decodableVersions must include encodingVersion ${encodingVersion}`);
  const known = new Set(decodable), told = (decodable ?? []).join(" ");
  for (const [i, version] of served.entries()) {
    yield* check(index(child(path, "servedVersions"), i), version);
    if (!known.has(version)) yield invalid(index(child(path, "servedVersions"), i), version, `individual served version : ${version} must be included in decodableVersions : [${told}]`);
  }
}

/** `before`: where its type stands already; -1: nowhere. */
function* validateCondition(path: string, { type, status, reason, message }: StorageVersionCondition, before: number): Iterable<FieldError> {
  if (before >= 0) yield invalid(child(path, "type"), type, `the type of the condition is not unique, it also appears in conditions[${before}]`);
  yield* isQualifiedName(child(path, "type"), type ?? "");
  yield* isQualifiedName(child(path, "status"), status ?? "");
  if (!reason) yield required(child(path, "reason"));
  if (!message) yield required(child(path, "message"));
}

/** `v1`, or `apps/v1`. */
function apiVersionProblems(apiVersion: string): string[] {
  const parts = apiVersion.split("/");
  if (parts.length > 2) return [`${VERSION_MESSAGE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')`];
  const version = parts.at(-1)!, group = parts.length === 2 ? parts[0] : undefined;
  const found: string[] = [];
  if (group === "") found.push(`group part: ${EMPTY_MESSAGE}`);
  else if (group !== undefined) found.push(...dns1123Subdomain(group).map((problem) => `group part: ${problem}`));
  return [...found, ...(version === "" ? [EMPTY_MESSAGE] : dns1035Label(version)).map((problem) => `version part: ${problem}`)];
}
