/**
 * Which families of addresses a service gets: what was asked for, what the cluster has, and how the one may become the other on an update.
 *
 * Source: kubernetes v1.36 pkg/registry/core/service/storage/alloc.go initIPFamilyFields
 */
import { child, type FieldError, index, invalid } from "../../../../api/meta/field-error.ts";
import type { Service } from "../../../../api/gen/core.v1.ts";
import { invalid as invalidObject } from "../../../../api/meta/status-error.ts";
import { type Family, familyOf } from "../../checks/ip.ts";
import { sameList } from "../shape.ts";
import { validateClusterIps } from "../validation-addresses.ts";

const POLICY = "spec.ipFamilyPolicy";

/** `families`: the cluster's, the one services get by default first. Mutates `next`; throws a 422 for what cannot be had. */
export function initFamilies(next: Service, old: Readonly<Service> | undefined, families: readonly Family[]): void {
  const { spec } = next;
  if (spec.type === "ExternalName" || (old && staysPreferDual(next, old))) return;
  const isSelectorless = spec.clusterIP === "None" && Object.keys(spec.selector ?? {}).length === 0;
  spec.ipFamilyPolicy ??= old?.spec.ipFamilyPolicy ?? (isSelectorless ? "RequireDualStack" : "SingleStack");
  refuse(next, [...validateClusterIps(next, old)]);
  refuse(next, [...reconcile(next, old, families)]);
  if (isSelectorless) {
    if (!spec.ipFamilies?.length) spec.ipFamilies = [families[0]!];
    if (spec.ipFamilyPolicy !== "SingleStack") addOther(next);
    return;
  }
  refuse(next, [...checkConfigured(next, families)]);
  if (!spec.ipFamilies?.length) spec.ipFamilies = [families[0]!];
  if (spec.ipFamilyPolicy !== "SingleStack" && families.length === 2) addOther(next);
}

function refuse(service: Readonly<Service>, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalidObject({ group: "", kind: "Service" }, service.metadata.name ?? "" /* a body may have none */, errors);
}

function addOther({ spec }: Service): void {
  if (spec.ipFamilies?.length === 1) spec.ipFamilies = [spec.ipFamilies[0]!, spec.ipFamilies[0] === "IPv4" ? "IPv6" : "IPv4"];
}

/** Nothing about addresses changes in a service that takes what it can get. */
export function staysPreferDual(next: Readonly<Service>, old: Readonly<Service>): boolean {
  return next.spec.ipFamilyPolicy === "PreferDualStack" && old.spec.type === next.spec.type && next.spec.type !== "ExternalName" &&
    (old.spec.ipFamilyPolicy ?? "PreferDualStack") === "PreferDualStack" &&
    sameList(old.spec.clusterIPs, next.spec.clusterIPs) && sameList(old.spec.ipFamilies, next.spec.ipFamilies);
}

/** Lists and policy must fit together; a service that becomes single-stack loses its second address. */
function* reconcile({ spec }: Service, old: Readonly<Service> | undefined, families: readonly Family[]): Iterable<FieldError> {
  const single = spec.ipFamilyPolicy === "SingleStack";
  const count = (list: readonly string[] | undefined): number => list?.length ?? 0;
  if (old && single) {
    if (sameList(old.spec.clusterIPs, spec.clusterIPs) && count(spec.clusterIPs) > 1) spec.clusterIPs = spec.clusterIPs!.slice(0, 1);
    if (sameList(old.spec.ipFamilies, spec.ipFamilies) && count(spec.ipFamilies) > 1) spec.ipFamilies = spec.ipFamilies!.slice(0, 1);
  } else if (old) {
    if (count(spec.clusterIPs) > 0 && count(spec.clusterIPs) < count(old.spec.clusterIPs)) yield invalid(POLICY, spec.ipFamilyPolicy, "must be 'SingleStack' to release the secondary cluster IP");
    if (count(spec.ipFamilies) > 0 && count(spec.ipFamilies) < count(old.spec.ipFamilies)) yield invalid(POLICY, spec.ipFamilyPolicy, "must be 'SingleStack' to release the secondary IP family");
  }
  if (single && count(spec.clusterIPs) === 2) yield invalid(POLICY, spec.ipFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified");
  if (single && count(spec.ipFamilies) === 2) yield invalid(POLICY, spec.ipFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified");
  for (const [i, ip] of (spec.clusterIPs ?? []).entries()) {
    if (ip === "None") break;
    if (i < count(spec.ipFamilies)) continue;
    const family = familyOf(ip);
    if (family && families.includes(family)) spec.ipFamilies = [...(spec.ipFamilies ?? []), family];
    else yield invalid(index("spec.clusterIPs", i), spec.clusterIPs, `${family ?? "unknown"} is not configured on this cluster`);
  }
}

function* checkConfigured({ spec }: Readonly<Service>, families: readonly Family[]): Iterable<FieldError> {
  if (spec.ipFamilyPolicy === "RequireDualStack" && families.length < 2) yield invalid(POLICY, spec.ipFamilyPolicy, "this cluster is not configured for dual-stack services");
  for (const [i, family] of (spec.ipFamilies ?? []).entries())
    if (!families.includes(family as Family)) yield invalid(index(child("spec", "ipFamilies"), i), family, "not configured on this cluster");
}
