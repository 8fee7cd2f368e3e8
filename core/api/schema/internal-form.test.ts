import { expect, test } from "vitest";
import { internalForm } from "./internal-form.ts";

test.each<[type: string, value: object, shown: string]>([
  ["core.v1.Taint", { key: "a", value: "b", effect: "NoSchedule" }, '{"Key":"a","Value":"b","Effect":"NoSchedule","TimeAdded":null}'],
  ["core.v1.Toleration", { key: "k", operator: "Exists" }, '{"Key":"k","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":null}'],
  ["core.v1.PodResourceClaim", { name: "a" }, '{"Name":"a","ResourceClaimName":null,"ResourceClaimTemplateName":null}'],
  ["core.v1.SecurityContext", { capabilities: { drop: ["ALL"] }, privileged: true, runAsUser: 1000, allowPrivilegeEscalation: false },
    '{"Capabilities":{"Add":null,"Drop":["ALL"]},"Privileged":true,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":1000,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}'],
  ["core.v1.PersistentVolumeClaimSpec", { accessModes: ["ReadWriteOnce"], selector: { matchLabels: { a: "b" } }, resources: { requests: { storage: "1Gi" } }, dataSource: { kind: "PersistentVolumeClaim", name: "o" } },
    '{"AccessModes":["ReadWriteOnce"],"Selector":{"matchLabels":{"a":"b"}},"Resources":{"Limits":null,"Requests":{"storage":"1Gi"}},"VolumeName":"","StorageClassName":null,"VolumeMode":null,"DataSource":{"APIGroup":null,"Kind":"PersistentVolumeClaim","Name":"o"},"DataSourceRef":null,"VolumeAttributesClassName":null}'],
  ["core.v1.ScopeSelector", { matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: ["a"] }] }, '{"MatchExpressions":[{"ScopeName":"PriorityClass","Operator":"In","Values":["a"]}]}'],
  ["resource.v1.DeviceAttribute", { int: 1, string: "x" }, '{"IntValue":1,"BoolValue":null,"StringValue":"x","VersionValue":null,"IntValues":null,"BoolValues":null,"StringValues":null,"VersionValues":null}'],
])("a %s", (type, value, shown) => expect(JSON.stringify(internalForm(`io.k8s.api.${type}`, value))).toBe(shown));
