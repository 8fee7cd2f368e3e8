/**
 * PodSecurityConfiguration: what holds in namespaces without labels, and who is exempt. A part of the file of --admission-control-config-file.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/pod-security-admission/admission/api/{v1,validation}
 */
import { duplicate, type FieldError, formatFieldErrors, invalid } from "../../api/meta/field-error.ts";
import { dns1123Label, dns1123Subdomain } from "../../api/meta/names.ts";
import { type Fields, fieldsOf } from "../../api/codec/strict-fields.ts";
import { LEVEL_PROBLEM, MODES, parseLevel, parseVersion, type Policy, VERSION_PROBLEM } from "./policy.ts";

export interface PodSecurityConfiguration {
  readonly defaults: Policy;
  readonly exemptions: { readonly usernames: readonly string[]; readonly namespaces: readonly string[]; readonly runtimeClasses: readonly string[] };
}

const VERSIONS = ["v1", "v1beta1", "v1alpha1"].map((version) => `pod-security.admission.config.k8s.io/${version}`);

/** Without a configuration: what holds by default. Throws for one that cannot be. */
export function podSecurityConfiguration(given: unknown): PodSecurityConfiguration {
  const fields = fieldsOf(given ?? { apiVersion: VERSIONS[0], kind: "PodSecurityConfiguration" }, { kind: "PodSecurityConfiguration", apiVersions: VERSIONS });
  const problems: FieldError[] = [];
  const defaults = fields.object("defaults");
  const policy = Object.fromEntries(MODES.map((mode) => [mode, levelVersion(mode, defaults, problems)])) as unknown as Policy;
  const exemptions = fields.object("exemptions");
  const names = (what: string, problemOf: (name: string) => readonly string[]): readonly string[] => {
    const list = exemptions.strings(what);
    for (const [i, name] of list.entries()) {
      const told = problemOf(name);
      if (told.length > 0) problems.push(invalid(`exemptions.${what}[${i}]`, name, told.join(", ")));
      else if (list.indexOf(name) < i) problems.push(duplicate(`exemptions.${what}[${i}]`, name));
    }
    return list;
  };
  const configuration = {
    defaults: policy,
    exemptions: { namespaces: names("namespaces", dns1123Label), runtimeClasses: names("runtimeClasses", dns1123Subdomain), usernames: names("usernames", (name) => (name === "" ? ["username must not be empty"] : [])) },
  };
  for (const section of [defaults, exemptions, fields]) section.end();
  if (problems.length > 0) throw new Error(formatFieldErrors(problems));
  return configuration;
}

function levelVersion(mode: (typeof MODES)[number], defaults: Fields, problems: FieldError[]): Policy["enforce"] {
  const level = defaults.text(mode) || "privileged";
  const version = defaults.text(`${mode}-version`) || "latest";
  const read = { level: parseLevel(level), version: parseVersion(version) };
  if (read.level === undefined) problems.push(invalid(`defaults.${mode}`, level, LEVEL_PROBLEM));
  if (read.version === undefined) problems.push(invalid(`defaults.${mode}-version`, version, VERSION_PROBLEM));
  return { level: read.level ?? "restricted", version: read.version ?? "latest" };
}
