/**
 * Which controllers run: --controllers, a list of names as "*,-ttl-controller". The first word that speaks of a controller counts; "*" stands for all that no word speaks of.
 *
 * Source: kubernetes v1.36 cmd/kube-controller-manager/names/controller_names.go, k8s.io/controller-manager/app/helper.go, options/generic.go
 */

/** What each was called before; "": it had no other name. */
const NAMES = {
  "serviceaccount-token-controller": "serviceaccount-token", "endpoints-controller": "endpoint", "endpointslice-controller": "endpointslice", "endpointslice-mirroring-controller": "endpointslicemirroring",
  "replicationcontroller-controller": "replicationcontroller", "pod-garbage-collector-controller": "podgc", "resourcequota-controller": "resourcequota", "namespace-controller": "namespace", "serviceaccount-controller": "serviceaccount",
  "garbage-collector-controller": "garbagecollector", "daemonset-controller": "daemonset", "job-controller": "job", "deployment-controller": "deployment", "replicaset-controller": "replicaset",
  "horizontal-pod-autoscaler-controller": "horizontalpodautoscaling", "disruption-controller": "disruption", "statefulset-controller": "statefulset", "cronjob-controller": "cronjob",
  "certificatesigningrequest-signing-controller": "csrsigning", "certificatesigningrequest-approving-controller": "csrapproving", "certificatesigningrequest-cleaner-controller": "csrcleaner",
  "ttl-controller": "ttl", "token-cleaner-controller": "tokencleaner", "bootstrap-signer-controller": "bootstrapsigner", "node-ipam-controller": "nodeipam",
  "node-lifecycle-controller": "nodelifecycle", "taint-eviction-controller": "", "device-taint-eviction-controller": "",
  "persistentvolume-binder-controller": "persistentvolume-binder", "persistentvolume-attach-detach-controller": "attachdetach", "persistentvolume-expander-controller": "persistentvolume-expander", "ephemeral-volume-controller": "ephemeral-volume",
  "clusterrole-aggregation-controller": "clusterrole-aggregation", "persistentvolumeclaim-protection-controller": "pvc-protection",
  "persistentvolume-protection-controller": "pv-protection", "volumeattributesclass-protection-controller": "", "podgroup-protection-controller": "",
  "ttl-after-finished-controller": "ttl-after-finished", "root-ca-certificate-publisher-controller": "root-ca-cert-publisher", "resourceclaim-controller": "resource-claim-controller",
  "legacy-serviceaccount-token-cleaner-controller": "legacy-service-account-token-cleaner", "validatingadmissionpolicy-status-controller": "",
  "service-cidr-controller": "", "storage-version-migrator-controller": "svm", "storageversion-garbage-collector-controller": "storage-version-gc",
  "kube-apiserver-serving-clustertrustbundle-publisher-controller": "", "podcertificaterequest-cleaner-controller": "", "resourcepoolstatusrequest-controller": "",
} as const satisfies Record<string, string>;
export type ControllerName = keyof typeof NAMES;

/** Upstream's that are none here, since nothing is there for them to do, or for want of their feature. */
const ABSENT: readonly string[] = [
  "service-ca-certificate-publisher-controller", "service-ca-cert-publisher",
  "selinux-warning-controller",
  "service-lb-controller", "service", "node-route-controller", "route", "cloud-node-lifecycle-controller", "cloud-node-lifecycle",
];

/** Whether a controller of this name runs. Throws an Error for the user. */
export function selectControllers(words: readonly string[]): (name: ControllerName) => boolean {
  const known = new Map<string, string>(Object.entries(NAMES).flatMap(([name, alias]) => [[name, name], ...(alias === "" ? [] : [[alias, name] as const])] as [string, string][]));
  const said = new Map<string, boolean>();
  for (const word of words) {
    const isOn = !word.startsWith("-");
    const given = isOn ? word : word.slice(1);
    if (given === "*" && isOn) continue;
    const name = known.get(given);
    if (name !== undefined) {
      if (!said.has(name)) said.set(name, isOn);
    } else if (!ABSENT.includes(given)) throw new Error(`${JSON.stringify(given)} is not in the list of known controllers`);
    else if (isOn) throw new Error(`there is no ${given} here`);
  }
  const all = words.includes("*");
  return (name) => said.get(name) ?? all;
}
