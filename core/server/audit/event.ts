/**
 * An audit event, as it is written: one for each stage of a request that is recorded.
 *
 * API:    https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/#audit-k8s-io-v1-Event
 * Source: kubernetes v1.36 apiserver/pkg/audit/{request,format}.go
 */
import type { Attributes } from "../../api/request/attributes.ts";
import type { UserInfo } from "../../api/request/user.ts";
import { formatIp, parseIp } from "../../net/cidr.ts";
import type { AuditLevel, AuditStage } from "./policy.ts";

export interface AuditUser { readonly username?: string; readonly uid?: string; readonly groups?: readonly string[]; readonly extra?: UserInfo["extra"] }
export interface ObjectReference {
  readonly resource?: string; readonly namespace?: string; readonly name?: string; readonly uid?: string;
  readonly apiGroup?: string; readonly apiVersion?: string; readonly resourceVersion?: string; readonly subresource?: string;
}
export interface ResponseStatus { readonly metadata: object; readonly status?: string; readonly message?: string; readonly reason?: string; readonly details?: object; readonly code?: number }

/** In the order it is written. */
export interface AuditEvent {
  readonly kind: "Event";
  readonly apiVersion: "audit.k8s.io/v1";
  readonly level: AuditLevel;
  readonly auditID: string;
  readonly stage: AuditStage;
  readonly requestURI: string;
  readonly verb: string;
  readonly user: AuditUser;
  readonly impersonatedUser?: AuditUser;
  /** The verb that allowed it, of a narrow mode of impersonation. */
  readonly authenticationMetadata?: { readonly impersonationConstraint: string };
  readonly sourceIPs?: readonly string[];
  readonly userAgent?: string;
  readonly objectRef?: ObjectReference;
  readonly responseStatus?: ResponseStatus;
  readonly requestObject?: unknown;
  readonly responseObject?: unknown;
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

export function auditUser({ name, uid, groups, extra }: UserInfo): AuditUser {
  return {
    ...(name === "" ? {} : { username: name }), ...(uid ? { uid } : {}), ...(groups.length > 0 ? { groups } : {}),
    ...(extra && Object.keys(extra).length > 0 ? { extra } : {}),
  };
}

export function objectReference(attributes: Attributes): ObjectReference | undefined {
  if (!attributes.isResource) return undefined;
  const { resource, namespace, name, group, version, subresource } = attributes;
  return {
    ...(resource === "" ? {} : { resource }), ...(namespace === "" ? {} : { namespace }), ...(name === "" ? {} : { name }), ...(group === "" ? {} : { apiGroup: group }),
    ...(version === "" ? {} : { apiVersion: version }), ...(subresource === "" ? {} : { subresource }),
  };
}

/** A request has come from the first of these, by way of the others; the last is the connection's. What headers name that is no address is left out. Source: apimachinery pkg/util/net/http.go SourceIPs */
export function sourceIps(forwardedFor: string | undefined, realIp: string | undefined, remoteAddress: string): string[] {
  const found = (forwardedFor ?? "").split(",").flatMap((part) => addressIn(part.trim()));
  for (const address of addressIn(realIp ?? "")) if (!found.includes(address)) found.push(address);
  if (found.at(-1) !== remoteAddress) found.push(remoteAddress);
  return found;
}

/** As it is written elsewhere; IPv4 may have zeros in front. */
function addressIn(text: string): readonly string[] {
  const ip = text === "" ? undefined : parseIp(text.includes(":") ? text : text.replace(/\b0+(?=\d)/g, ""));
  return ip ? [formatIp(ip)] : [];
}

/** The older form: one line of text. */
export function legacyLine({ requestReceivedTimestamp, auditID, stage, sourceIPs, verb, user, impersonatedUser, userAgent = "", objectRef, requestURI, responseStatus }: AuditEvent): string {
  const quoted = (list: readonly string[]): string => list.map((one) => JSON.stringify(one)).join(",");
  const groups = user.groups?.length ? quoted(user.groups) : "<none>";
  const asGroups = impersonatedUser?.groups ? quoted(impersonatedUser.groups) : "<lookup>";
  return `${requestReceivedTimestamp} AUDIT: id=${JSON.stringify(auditID)} stage=${JSON.stringify(stage)} ip=${JSON.stringify(sourceIPs?.[0] ?? "<unknown>")} method=${JSON.stringify(verb)} user=${JSON.stringify(user.username ?? "<none>")} groups=${JSON.stringify(groups)} `
    + `as=${JSON.stringify(impersonatedUser?.username ?? "<self>")} asgroups=${JSON.stringify(asGroups)} user-agent=${JSON.stringify(userAgent)} namespace=${JSON.stringify(objectRef?.namespace ?? "<none>")} uri=${JSON.stringify(requestURI)} response="${responseStatus?.code ?? "<deferred>"}"`;
}

/** A value without what tells who owns which field; lists' items and the objects of Tables' rows likewise. */
export function withoutManagedFields(value: unknown): unknown {
  const { metadata, items, rows } = value as { metadata?: { managedFields?: unknown }; items?: readonly unknown[]; rows?: readonly { object?: unknown }[] };
  const shallow = metadata?.managedFields === undefined ? value : { ...(value as object), metadata: { ...metadata, managedFields: undefined } };
  if (Array.isArray(rows) && (value as { kind?: string }).kind === "Table") return { ...(shallow as object), rows: rows.map((row) => (row.object ? { ...row, object: withoutManagedFields(row.object) } : row)) };
  return Array.isArray(items) ? { ...(shallow as object), items: items.map(withoutManagedFields) } : shallow;
}
