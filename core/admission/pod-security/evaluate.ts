/**
 * The Pod Security Standards as a table: which check holds at which level from which version on, and what a pod does that they forbid.
 *
 * A new version of Kubernetes may ask for more, or for less, than the one before; a namespace can stay with the standards of a version.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/pod-security-admission/policy/{registry,checks}.go
 */
import type { PodSpec } from "../../api/gen/core.v1.ts";
import * as baseline from "./baseline.ts";
import { type Check, checkedOf, type Violation } from "./containers.ts";
import type { LevelVersion } from "./policy.ts";
import * as restricted from "./restricted.ts";

interface Row {
  readonly id: string;
  /** From a minor version on, rising. */
  readonly versions: readonly (readonly [from: number, check: Check])[];
  /** Of a restricted check: the baseline check it takes the place of. */
  readonly overrides?: string;
}

const BASELINE: readonly Row[] = [
  { id: "appArmorProfile", versions: [[0, baseline.appArmorProfile]] },
  { id: "capabilities_baseline", versions: [[0, baseline.capabilitiesBaseline]] },
  { id: "hostNamespaces", versions: [[0, baseline.hostNamespaces]] },
  { id: "hostPathVolumes", versions: [[0, baseline.hostPathVolumes]] },
  { id: "hostPorts", versions: [[0, baseline.hostPorts]] },
  { id: "hostProbesAndHostLifecycle", versions: [[34, baseline.hostProbesAndLifecycle]] },
  { id: "privileged", versions: [[0, baseline.privileged]] },
  { id: "procMount", versions: [[0, baseline.procMount], [35, baseline.procMountUnlessUserNamespace]] },
  { id: "seLinuxOptions", versions: [[0, baseline.seLinuxOptions], [31, baseline.seLinuxOptionsFrom31]] },
  { id: "seccompProfile_baseline", versions: [[0, baseline.seccompAnnotations], [19, baseline.seccompBaseline]] },
  { id: "sysctls", versions: [[0, baseline.sysctls], [27, baseline.sysctlsFrom27], [29, baseline.sysctlsFrom29], [32, baseline.sysctlsFrom32]] },
  { id: "windowsHostProcess", versions: [[0, baseline.windowsHostProcess]] },
];

const RESTRICTED: readonly Row[] = [
  { id: "allowPrivilegeEscalation", versions: [[8, restricted.allowPrivilegeEscalation], [25, restricted.unlessWindows(restricted.allowPrivilegeEscalation)]] },
  { id: "capabilities_restricted", versions: [[22, restricted.capabilitiesRestricted], [25, restricted.unlessWindows(restricted.capabilitiesRestricted)]], overrides: "capabilities_baseline" },
  { id: "procMount_restricted", versions: [[35, baseline.procMount]], overrides: "procMount" },
  { id: "restrictedVolumes", versions: [[0, restricted.restrictedVolumes]], overrides: "hostPathVolumes" },
  { id: "runAsNonRoot", versions: [[0, restricted.runAsNonRoot], [35, restricted.unlessUserNamespace(restricted.runAsNonRoot)]] },
  { id: "runAsUser", versions: [[23, restricted.runAsUser], [35, restricted.unlessUserNamespace(restricted.runAsUser)]] },
  { id: "seccompProfile_restricted", versions: [[19, restricted.seccompRestricted], [25, restricted.unlessWindows(restricted.seccompRestricted)]], overrides: "seccompProfile_baseline" },
];

/** In this order, which is that of what clients are told. */
function checksOf({ level, version }: LevelVersion): Check[] {
  if (level === "privileged") return [];
  const minor = version === "latest" ? Number.POSITIVE_INFINITY : version;
  const inForce = (rows: readonly Row[]) => rows.flatMap(({ id, versions, overrides }) => {
    const check = versions.findLast(([from]) => from <= minor)?.[1];
    return check ? [{ id, check, overrides }] : [];
  });
  const more = level === "restricted" ? inForce(RESTRICTED) : [];
  const overridden = new Set(more.map(({ overrides }) => overrides));
  return [...inForce(BASELINE).filter(({ id }) => !overridden.has(id)), ...more].map(({ check }) => check);
}

export interface PodTemplate { readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> | undefined } | undefined; readonly spec: Readonly<PodSpec> }

export function violationsOf(wanted: LevelVersion, { metadata, spec }: PodTemplate): readonly Violation[] {
  const checked = checkedOf(metadata?.annotations, spec);
  return checksOf(wanted).flatMap((check) => check(checked) ?? []);
}

/** With what was found: privileged (container "a" must not set …), hostPort (…) */
export function detailOf(violations: readonly Violation[]): string { return violations.map(({ reason, detail }) => (detail === "" ? reason : `${reason} (${detail})`)).join(", "); }

export function reasonOf(violations: readonly Violation[]): string { return violations.map(({ reason }) => reason).join(", "); }
