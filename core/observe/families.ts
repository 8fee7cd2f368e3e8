/**
 * Which metrics belong to which component. One process counts for all of them, upstream's components each tell their own: whoever scrapes the API server
 * and the kubelet must not get the ten thousand series of the API server twice.
 */
const CONTROL_PLANE = /^(?!apiserver_delegated_)(aggregator|apiserver|authenticated_user|authentication|authorization|etcd|field_validation|konnectivity_network_proxy_server|kube_apiserver|leader_election|node_collector|pod_gc_collector|pod_security|pv_collector|retroactive_storageclass|root_ca_cert_publisher|running_managed|scheduler|serviceaccount|storage_count|volume_operation|workqueue|\w+_controller)_/;
/** Whom a kubelet does not know it asks the API server about, which upstream counts under that name. */
const NODE = /^(apiserver_delegated_auth[nz]|dra|kubelet|kubeproxy|prober_probe)_/;
const CONTROLLERS = /^(?!apiserver_)(node_collector|pod_gc_collector|pv_collector|retroactive_storageclass|root_ca_cert_publisher|running_managed|storage_count|volume_operation|workqueue|\w+_controller)_/;
const SCHEDULER = /^scheduler_/;
/** Every component tells these of itself. */
const COMMON = /^(leader_election_|process_|kubernetes_|version_info$|(registered|disabled|hidden)_metrics_total$|cardinality_enforcement_)/;
const PROBES = /^(prober_probe|process_start_time_seconds)/;

/** What the API server tells at /metrics, for the scheduler and the controllers too: not what the node beside it counts, which tells it itself. */
export function isOfControlPlane(family: string): boolean { return !NODE.test(family); }

/** What the controllers tell at a port of their own, where kube-controller-manager has its. */
export function isOfControllers(family: string): boolean { return CONTROLLERS.test(family) || COMMON.test(family); }

/** What the scheduler tells at a port of its own. */
export function isOfScheduler(family: string): boolean { return SCHEDULER.test(family) || COMMON.test(family); }

/** What a node tells at its kubelet's and its proxy's /metrics: not what the API server, the scheduler and the controllers count. */
export function isOfNode(family: string): boolean { return !CONTROL_PLANE.test(family); }

/** What the kubelet tells at /metrics/probes. */
export function isOfProbes(family: string): boolean { return PROBES.test(family); }
