/** AppArmor profiles named in annotations, as the field that replaced them. Source: kubernetes v1.36 pkg/registry/core/pod/strategy.go applyAppArmorVersionSkew */
import type { AppArmorProfile, Pod } from "../../../api/gen/core.v1.ts";
import { semanticEqual } from "../checks/equal.ts";
import { containersOf } from "./containers.ts";
import { APPARMOR_ANNOTATION_PREFIX, validateAppArmor } from "./validation/security.ts";

const LOCAL_PREFIX = "localhost/";

export function appArmorFor(annotation: string): AppArmorProfile | undefined {
  if (annotation === "unconfined") return { type: "Unconfined" };
  if (annotation === "runtime/default") return { type: "RuntimeDefault" };
  const localhostProfile = annotation.startsWith(LOCAL_PREFIX) ? annotation.slice(LOCAL_PREFIX.length) : "";
  return localhostProfile === "" ? undefined : { type: "Localhost", localhostProfile };
}

/** Sets the field of containers that only have the annotation. Answers the annotations that were needed, or could not be understood. Mutates. */
export function applyAppArmorAnnotations(pod: Pod): string[] {
  const deprecated: string[] = [];
  if (pod.spec.os?.name === "windows") return deprecated;
  for (const { container } of containersOf(pod.spec)) {
    const key = APPARMOR_ANNOTATION_PREFIX + container.name;
    const annotation = pod.metadata.annotations?.[key];
    if (annotation === undefined || container.securityContext?.appArmorProfile) continue;
    const profile = appArmorFor(annotation);
    const isValid = profile !== undefined && [...validateAppArmor("", profile)].length === 0;
    if (isValid && semanticEqual(profile, pod.spec.securityContext?.appArmorProfile)) continue;
    deprecated.push(key);
    if (isValid) (container.securityContext ??= {}).appArmorProfile = profile;
  }
  return deprecated;
}
