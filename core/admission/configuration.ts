/**
 * AdmissionConfiguration: the file of --admission-control-config-file, with a section for each plug-in that can be configured.
 *
 *   apiVersion: apiserver.config.k8s.io/v1
 *   kind: AdmissionConfiguration
 *   plugins:
 *   - name: PodSecurity
 *     configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, …}
 *   - name: EventRateLimit
 *     path: eventconfig.yaml                                # beside this file
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/admission/config.go
 */
import { fieldsOf } from "../api/codec/strict-fields.ts";
import { parseStrictYaml } from "../api/codec/yaml.ts";

const VERSIONS = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];

/** A plug-in's name to its configuration, not yet looked at. `readFile`: a path as it stands in the file to the text there. */
export function admissionConfiguration(text: string, readFile: (path: string) => string): ReadonlyMap<string, unknown> {
  const fields = fieldsOf(parseStrictYaml(text), { kind: "AdmissionConfiguration", apiVersions: VERSIONS });
  const found = new Map<string, unknown>();
  for (const plugin of fields.objects("plugins")) {
    const name = plugin.text("name");
    if (name === "") throw new Error(`${plugin.path}.name: Required value`);
    if (found.has(name)) throw new Error(`${plugin.path}.name: Duplicate value: ${JSON.stringify(name)}`);
    const path = plugin.text("path");
    const inline = plugin.any("configuration");
    plugin.end();
    found.set(name, inline ?? (path === "" ? undefined : parseStrictYaml(readFile(path))));
  }
  fields.end();
  return found;
}
