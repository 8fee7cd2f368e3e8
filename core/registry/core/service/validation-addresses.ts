/**
 * Addresses and families of a service: how the fields fit together, and how they may change.
 *
 * Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidateServiceClusterIPsRelatedFields, validateUpgradeDowngrade…
 */
import { child, duplicate, type FieldError, index, internal, invalid, notSupported, required } from "../../../api/meta/field-error.ts";
import type { Service } from "../../../api/gen/core.v1.ts";
import { familyOf, isDualStack, legacyIp } from "../checks/ip.ts";
import { isHeadless } from "./shape.ts";
import { repeats } from "../../../api/meta/linear.ts";

const IPS = "spec.clusterIPs";
const FAMILIES = "spec.ipFamilies";
const POLICY = "spec.ipFamilyPolicy";
const POLICIES = ["PreferDualStack", "RequireDualStack", "SingleStack"];

export function* validateClusterIps(service: Readonly<Service>, old: Readonly<Service> | undefined): Iterable<FieldError> {
  const { type, clusterIP, clusterIPs = [], ipFamilies = [], ipFamilyPolicy } = service.spec;
  if (type === "ExternalName") return;
  if (clusterIP) {
    if (clusterIPs.length === 0) yield required(IPS);
    else if (clusterIPs[0] !== clusterIP) yield invalid(IPS, clusterIPs, "first value must match `clusterIP`");
  } else if (clusterIPs.length > 0) yield invalid(IPS, clusterIPs, "must be empty when `clusterIP` is not specified");

  const cameBefore = repeats<string>();
  for (const [i, family] of ipFamilies.entries()) {
    if (family !== "IPv4" && family !== "IPv6") yield notSupported(index(FAMILIES, i), family, ["IPv4", "IPv6"]);
    if (cameBefore(family)) yield duplicate(index(FAMILIES, i), family);
  }
  if (ipFamilyPolicy !== undefined && !POLICIES.includes(ipFamilyPolicy)) yield notSupported(POLICY, ipFamilyPolicy, POLICIES);

  const wrong = [...validateIps(clusterIPs, new Set(old?.spec.clusterIPs))];
  yield* wrong;
  if (clusterIPs.length > 2) yield invalid(IPS, clusterIPs, "may only hold up to 2 values");
  if (wrong.length > 0) return;
  const noAddress = clusterIPs.findIndex((ip) => familyOf(ip) === undefined); // one that was stored before may stay
  if (clusterIPs.length > 1 && noAddress >= 0) yield internal(IPS, `failed to check for dual stack with error:invalid IP[${noAddress}]: ${clusterIPs[noAddress]}`);
  if (clusterIPs.length > 1 && !isDualStack(clusterIPs)) yield invalid(IPS, clusterIPs, "may specify no more than one IP for each IP family");
  if (isHeadless(service)) return;
  for (const [i, ip] of clusterIPs.entries()) {
    const family = ipFamilies[i];
    if ((family === "IPv4" && familyOf(ip) === "IPv6") || (family === "IPv6" && familyOf(ip) !== "IPv6"))
      yield invalid(index(IPS, i), ip, `expected an ${family} value as indicated by \`ipFamilies[${i}]\``);
  }
}

function* validateIps(ips: readonly string[], known: ReadonlySet<string>): Iterable<FieldError> {
  for (const [i, ip] of ips.entries()) {
    if (i === 0 && ip === "None") {
      if (ips.length > 1) yield invalid(IPS, ips, "'None' must be the first and only value");
    } else yield* legacyIp(index(IPS, i), ip, known);
  }
}

/** The first address stays for life; a second may come, and go again. */
export function* validateClusterIpChange(next: Readonly<Service>, old: Readonly<Service>): Iterable<FieldError> {
  if (next.spec.type === "ExternalName" || old.spec.type === "ExternalName" || (isHeadless(old) && isHeadless(next))) return;
  const [before, after] = [old.spec.clusterIPs ?? [], next.spec.clusterIPs ?? []];
  if (before.length === after.length) {
    for (const [i, ip] of before.entries()) if (ip !== after[i]) yield invalid(index(IPS, i), after, "may not change once set");
    return;
  }
  if (before.length > after.length && after.length === 0) yield invalid(index(IPS, 0), after, "primary clusterIP can not be unset");
  if (before.length > 0 && after.length > 0 && before[0] !== after[0]) yield invalid(index(IPS, 0), after, "may not change once set");
  if (before.length > after.length && after.length === 1 && next.spec.ipFamilyPolicy !== "SingleStack")
    yield invalid(POLICY, next.spec.ipFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary clusterIP");
}

export function* validateFamilyChange(next: Readonly<Service>, old: Readonly<Service>): Iterable<FieldError> {
  if (next.spec.type === "ExternalName" || old.spec.type === "ExternalName" || isHeadless(old) || isHeadless(next)) return;
  const [before, after] = [old.spec.ipFamilies ?? [], next.spec.ipFamilies ?? []];
  const at = index(child("spec", "ipFamilies"), 0);
  if (before.length === after.length) {
    for (const [i, family] of before.entries()) if (family !== after[i]) yield invalid(at, after, "may not change once set");
    return;
  }
  if (before.length > after.length && (next.spec.clusterIPs ?? []).length === 0) yield invalid(at, after, "primary ipFamily can not be unset");
  if (before.length > 0 && after.length > 0 && before[0] !== after[0]) yield invalid(at, next.spec.clusterIPs, "may not change once set");
  if (before.length > after.length && after.length === 1 && next.spec.ipFamilyPolicy !== "SingleStack")
    yield invalid(POLICY, next.spec.ipFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary ipFamily");
}
