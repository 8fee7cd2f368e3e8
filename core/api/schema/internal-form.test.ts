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
  ["core.v1.VolumeNodeAffinity", {}, '{"Required":null}'], ["core.v1.NodeSelectorTerm", { matchFields: [] }, '{"MatchExpressions":null,"MatchFields":[]}'],
  ["core.v1.PodAffinityTerm", { labelSelector: { matchLabels: {}, matchExpressions: [{ key: "a", operator: "Exists", values: [] }] }, namespaces: [] },
    '{"LabelSelector":{"matchExpressions":[{"key":"a","operator":"Exists"}]},"Namespaces":[],"TopologyKey":"","NamespaceSelector":null,"MatchLabelKeys":null,"MismatchLabelKeys":null}'],
  ["core.v1.ScopeSelector", { matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: ["a"] }] }, '{"MatchExpressions":[{"ScopeName":"PriorityClass","Operator":"In","Values":["a"]}]}'],
  ["resource.v1.DeviceAttribute", { int: 1, string: "x" }, '{"IntValue":1,"BoolValue":null,"StringValue":"x","VersionValue":null,"IntValues":null,"BoolValues":null,"StringValues":null,"VersionValues":null}'],
  ["core.v1.PersistentVolumeSource", { iscsi: { targetPortal: "p", iqn: "q", lun: 1 } },
    '{"GCEPersistentDisk":null,"AWSElasticBlockStore":null,"HostPath":null,"Glusterfs":null,"NFS":null,"RBD":null,"Quobyte":null,"ISCSI":{"TargetPortal":"p","IQN":"q","Lun":1,"ISCSIInterface":"","FSType":"","ReadOnly":false,"Portals":null,"DiscoveryCHAPAuth":false,"SessionCHAPAuth":false,"SecretRef":null,"InitiatorName":null},"FlexVolume":null,"Cinder":null,"CephFS":null,"FC":null,"Flocker":null,"AzureFile":null,"VsphereVolume":null,"AzureDisk":null,"PhotonPersistentDisk":null,"PortworxVolume":null,"ScaleIO":null,"Local":null,"StorageOS":null,"CSI":null}'],
  ["core.v1.PodTemplateSpec", { metadata: { labels: { a: "b" } }, spec: { containers: [], hostNetwork: true, securityContext: { runAsUser: 5 }, serviceAccountName: "s", serviceAccount: "s" } },
    '{"labels":{"a":"b"},"Spec":{"Volumes":null,"InitContainers":null,"Containers":[],"EphemeralContainers":null,"RestartPolicy":"","TerminationGracePeriodSeconds":null,"ActiveDeadlineSeconds":null,"DNSPolicy":"","NodeSelector":null,"ServiceAccountName":"s","AutomountServiceAccountToken":null,"NodeName":"","SecurityContext":{"HostNetwork":true,"HostPID":false,"HostIPC":false,"ShareProcessNamespace":null,"HostUsers":null,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":5,"RunAsGroup":null,"RunAsNonRoot":null,"SupplementalGroups":null,"SupplementalGroupsPolicy":null,"FSGroup":null,"FSGroupChangePolicy":null,"Sysctls":null,"SeccompProfile":null,"AppArmorProfile":null,"SELinuxChangePolicy":null},"ImagePullSecrets":null,"Hostname":"","Subdomain":"","SetHostnameAsFQDN":null,"Affinity":null,"SchedulerName":"","Tolerations":null,"HostAliases":null,"PriorityClassName":"","Priority":null,"PreemptionPolicy":null,"DNSConfig":null,"ReadinessGates":null,"RuntimeClassName":null,"Overhead":null,"EnableServiceLinks":null,"TopologySpreadConstraints":null,"OS":null,"SchedulingGates":null,"ResourceClaims":null,"Resources":null,"HostnameOverride":null,"SchedulingGroup":null}}'],
])("a %s", (type, value, shown) => expect(JSON.stringify(internalForm(`io.k8s.api.${type}`, value))).toBe(shown));

test("of more structs than anybody looks through, those at the end are shown as they were sent", () => {
  const volumes = Array.from({ length: 20_000 }, (_, i) => ({ name: `v${i}` }));
  const shown = internalForm("io.k8s.api.core.v1.PodSpec", { volumes })["Volumes"] as readonly object[];
  expect(shown).toHaveLength(20_000);
  expect(shown[0]).toMatchObject({ Name: "v0", HostPath: null });
  expect(shown.at(-1)).toEqual({ name: "v19999" });
});
