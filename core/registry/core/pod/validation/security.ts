/**
 * Security contexts of pods and containers: users and groups, profiles of seccomp and AppArmor.
 *
 * Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidateSecurityContext, validatePodSpecSecurityContext
 */
import { child, type FieldError, forbidden, index, invalid, key, notSupported, required, tooLong } from "../../../../api/meta/field-error.ts";
import type { AppArmorProfile, PodSpec, SeccompProfile, SecurityContext } from "../../../../api/gen/core.v1.ts";
import { byteLength } from "../../../../api/meta/byte-length.ts";
import { goQuote } from "../../../../api/meta/go-quote.ts";
import { userId } from "../../../../api/meta/names.ts";
import type { TemplateMeta } from "../../../../api/meta/object-meta.ts";
import { internalForm } from "../../../../api/schema/internal-form.ts";
import { localDescending } from "../../checks/paths.ts";
import { oneOfOptional, problems } from "../../checks/values.ts";
import { containersOf } from "../containers.ts";
import type { PodRules } from "../rules.ts";
import { validateSysctls } from "./sysctls.ts";
import { validateWindowsOptions } from "./windows.ts";

const CONTEXT = "io.k8s.api.core.v1.SecurityContext";
export const APPARMOR_ANNOTATION_PREFIX = "container.apparmor.security.beta.kubernetes.io/";
export const SECCOMP_POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod";
export const SECCOMP_CONTAINER_ANNOTATION_PREFIX = "container.seccomp.security.alpha.kubernetes.io/";
const LOCAL_PREFIX = "localhost/";
const PROFILE_TYPES = ["Localhost", "RuntimeDefault", "Unconfined"];
const APPARMOR_PROFILE_BYTES_MAX = 4095;

export function* validateSecurityContext(path: string, context: SecurityContext, hostUsers: boolean): Iterable<FieldError> {
  const { runAsUser, runAsGroup, procMount, allowPrivilegeEscalation, privileged, capabilities } = context;
  if (runAsUser !== undefined) yield* problems(child(path, "runAsUser"), runAsUser, userId(runAsUser));
  if (runAsGroup !== undefined) yield* problems(child(path, "runAsGroup"), runAsGroup, userId(runAsGroup));
  if (procMount !== undefined) {
    const at = child(path, "procMount");
    if (procMount !== "Default" && procMount !== "Unmasked") yield notSupported(at, procMount, ["Default", "Unmasked"]);
    if (hostUsers && procMount === "Unmasked") yield invalid(at, procMount, "`hostUsers` must be false to use `Unmasked`");
  }
  yield* validateSeccomp(child(path, "seccompProfile"), context.seccompProfile);
  if (allowPrivilegeEscalation === false) {
    if (privileged) yield invalid(path, internalForm(CONTEXT, context), "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    const shown = capabilities?.add?.includes("CAP_SYS_ADMIN") ? internalForm(CONTEXT, context) : undefined;
    for (const capability of capabilities?.add ?? [])
      if (capability === "CAP_SYS_ADMIN") yield invalid(path, shown, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
  }
  if (context.windowsOptions) yield* validateWindowsOptions(child(path, "windowsOptions"), context.windowsOptions);
  yield* validateAppArmor(child(path, "appArmorProfile"), context.appArmorProfile);
}

export function* validatePodSecurityContext(path: string, spec: Readonly<PodSpec>, rules: PodRules): Iterable<FieldError> {
  const context = spec.securityContext;
  if (!context) return;
  for (const field of ["fsGroup", "runAsUser", "runAsGroup"] as const) {
    const id = context[field];
    if (id !== undefined) yield* problems(child(path, field), id, userId(id));
  }
  for (const [i, group] of (context.supplementalGroups ?? []).entries()) yield* problems(index(child(path, "supplementalGroups"), i), group, userId(group));
  if (spec.shareProcessNamespace && spec.hostPID)
    yield invalid(child(path, "shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled");
  yield* validateSysctls(spec, child(path, "sysctls"), rules.allowHostSysctls);
  yield* oneOfOptional(child(path, "fsGroupChangePolicy"), context.fsGroupChangePolicy, ["Always", "OnRootMismatch"]);
  yield* validateSeccomp(child(path, "seccompProfile"), context.seccompProfile);
  if (context.windowsOptions) yield* validateWindowsOptions(child(path, "windowsOptions"), context.windowsOptions);
  yield* validateAppArmor(child(path, "appArmorProfile"), context.appArmorProfile);
  yield* oneOfOptional(child(path, "supplementalGroupsPolicy"), context.supplementalGroupsPolicy, ["Merge", "Strict"]);
  yield* oneOfOptional(child(path, "seLinuxChangePolicy"), context.seLinuxChangePolicy, rules.allowSeLinuxMountOption ? ["MountOption", "Recursive"] : ["Recursive"]);
}
function* validateSeccomp(path: string, profile: SeccompProfile | undefined): Iterable<FieldError> {
  if (!profile) return;
  const at = child(path, "localhostProfile");
  if (!profile.type) yield required(child(path, "type"), "type is required when seccompProfile is set");
  else if (!PROFILE_TYPES.includes(profile.type)) yield notSupported(child(path, "type"), profile.type, PROFILE_TYPES);
  if (profile.type === "Localhost") {
    if (profile.localhostProfile === undefined) yield required(at, "must be set when seccomp type is Localhost");
    else yield* localDescending(at, profile.localhostProfile);
  } else if (profile.localhostProfile !== undefined) yield invalid(at, { Type: profile.type, LocalhostProfile: profile.localhostProfile }, "can only be set when seccomp type is Localhost");
}

export function* validateAppArmor(path: string, profile: AppArmorProfile | undefined): Iterable<FieldError> {
  if (!profile) return;
  const at = child(path, "localhostProfile");
  const name = profile.localhostProfile;
  switch (profile.type) {
    case "Localhost":
      if (name === undefined) { yield required(at, "must be set when AppArmor type is Localhost"); return; }
      if (name.trim() !== name) yield invalid(at, name, "must not be padded with whitespace");
      else if (name === "") yield required(at, "must be set when AppArmor type is Localhost");
      if (byteLength(name) > APPARMOR_PROFILE_BYTES_MAX) yield tooLong(at, APPARMOR_PROFILE_BYTES_MAX);
      return;
    case "RuntimeDefault": case "Unconfined":
      if (name !== undefined) yield invalid(at, name, "can only be set when AppArmor type is Localhost");
      return;
    default:
      if (!profile.type) yield required(child(path, "type"), "type is required when appArmorProfile is set");
      else yield notSupported(child(path, "type"), profile.type, PROFILE_TYPES);
  }
}

/** The annotations from before there were fields. */
export function* validateProfileAnnotations(path: string, annotations: Readonly<Record<string, string>>, spec: Readonly<PodSpec>): Iterable<FieldError> {
  const pod = annotations[SECCOMP_POD_ANNOTATION];
  if (pod !== undefined) yield* seccompAnnotation(child(path, SECCOMP_POD_ANNOTATION), pod);
  for (const [name, value] of Object.entries(annotations))
    if (name.startsWith(SECCOMP_CONTAINER_ANNOTATION_PREFIX)) yield* seccompAnnotation(child(path, name), value);
  let names: ReadonlySet<string> | undefined;
  for (const [name, value] of Object.entries(annotations)) {
    if (!name.startsWith(APPARMOR_ANNOTATION_PREFIX)) continue;
    const container = name.slice(APPARMOR_ANNOTATION_PREFIX.length);
    names ??= new Set(containersOf(spec).map((at) => at.container.name));
    if (!names.has(container)) yield invalid(key(path, name), container, "container not found");
    if (value !== "" && value !== "runtime/default" && value !== "unconfined" && !value.startsWith(LOCAL_PREFIX))
      yield invalid(key(path, name), value, `invalid AppArmor profile name: ${goQuote(value)}`);
  }
}

function* seccompAnnotation(path: string, profile: string): Iterable<FieldError> {
  if (["runtime/default", "docker/default", "unconfined"].includes(profile)) return;
  if (profile.startsWith(LOCAL_PREFIX)) yield* localDescending(path, profile.slice(LOCAL_PREFIX.length));
  else yield invalid(path, profile, "must be a valid seccomp profile");
}

/** A field and the annotation it replaced may both be there, if they say the same. */
export function* validateProfilesAgree(path: string, metadata: Readonly<TemplateMeta>, spec: Readonly<PodSpec>): Iterable<FieldError> {
  const { annotations } = metadata;
  if (!annotations) return;
  const podAt = child(path, "securityContext", "seccompProfile");
  yield* agree(podAt, annotations[SECCOMP_POD_ANNOTATION], spec.securityContext?.seccompProfile, "seccomp", ["runtime/default", "docker/default"]);
  for (const { container, path: at } of containersOf(spec, path))
    yield* agree(child(at, "securityContext", "seccompProfile"), annotations[SECCOMP_CONTAINER_ANNOTATION_PREFIX + container.name], container.securityContext?.seccompProfile, "seccomp", ["runtime/default", "docker/default"]);
  if (spec.os?.name === "windows") return;
  for (const { container, path: at } of containersOf(spec, path)) {
    const profile = container.securityContext?.appArmorProfile ?? spec.securityContext?.appArmorProfile;
    yield* agree(child(at, "securityContext", "appArmorProfile"), annotations[APPARMOR_ANNOTATION_PREFIX + container.name], profile, "apparmor", ["runtime/default"]);
  }
}

function* agree(path: string, annotation: string | undefined, profile: SeccompProfile | AppArmorProfile | undefined, what: string, defaults: readonly string[]): Iterable<FieldError> {
  if (annotation === undefined || !profile) return;
  const typeWrong = forbidden(child(path, "type"), `${what} type in annotation and field must match`);
  if (profile.type === "Unconfined" && annotation !== "unconfined") yield typeWrong;
  if (profile.type === "RuntimeDefault" && !defaults.includes(annotation)) yield typeWrong;
  if (profile.type !== "Localhost") return;
  if (!annotation.startsWith(LOCAL_PREFIX)) yield typeWrong;
  else if (annotation.slice(LOCAL_PREFIX.length) !== profile.localhostProfile) yield forbidden(child(path, "localhostProfile"), `${what} profile in annotation and field must match`);
}
