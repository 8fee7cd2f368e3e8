/**
 * The flags of every command: one table drives parsing, CORACLE_* variables, config.yaml keys and --help.
 *
 * Precedence, as k3s has it: flags, then variables, then the file; a list flag given twice keeps both. A key of the file that ends in "+" adds to a
 * list instead of replacing it.
 */
export type FlagType = "string" | "boolean" | "integer" | "port" | "list";

export interface Flag {
  readonly name: string;
  readonly type: FlagType;
  readonly default?: string | number | boolean;
  readonly commands: readonly ("server" | "agent" | "simulate")[];
  readonly help: string;
}

const BOTH = ["server", "agent"] as const;
const SERVER = ["server"] as const;
const ALL = ["server", "agent", "simulate"] as const;
/** Windows keeps the same places, on its first drive. */
const ROOT = process.platform === "win32" ? "C:" : "";
export const CONFIG_FILE = `${ROOT}/etc/coracle/config.yaml`;

/** What --disable takes. */
export const PARTS = ["dns", "proxy", "network", "network-policy", "servicelb", "ingress", "scheduler", "controllers", "local-storage", "metrics-server"] as const;

/** What --overlay takes. */
export const OVERLAYS = ["vxlan", "host-gw", "none"] as const;

export const FLAGS = [
  { name: "data-dir", type: "string", default: `${ROOT}/var/lib/coracle`, commands: ALL, help: "where everything is kept" },
  { name: "config", type: "string", default: CONFIG_FILE, commands: ALL, help: "file with the same keys as these flags" },
  { name: "log-level", type: "string", default: "info", commands: ALL, help: "debug, info, warn or error" },
  { name: "token", type: "string", commands: ["server", "agent", "simulate"], help: "what machines join with: the server's token, or one of coracle token create" },
  { name: "token-file", type: "string", commands: ["server", "agent", "simulate"], help: "file with the token, instead of --token" },
  { name: "https-listen-port", type: "port", default: 6443, commands: SERVER, help: "port of the API server" },
  { name: "bind-address", type: "string", default: "::", commands: SERVER, help: "address the API server listens on" },
  { name: "advertise-address", type: "string", commands: SERVER, help: "address other members reach the API server at; default: the node's" },
  { name: "tls-san", type: "list", commands: SERVER, help: "further names or addresses in the serving certificate" },
  { name: "cluster-cidr", type: "string", default: "10.42.0.0/16", commands: SERVER, help: "addresses of pods" },
  { name: "service-cidr", type: "string", default: "10.43.0.0/16", commands: SERVER, help: "addresses of services" },
  { name: "cluster-dns", type: "string", default: "10.43.0.10", commands: SERVER, help: "address of the cluster's DNS; with another --service-cidr its tenth" },
  { name: "cluster-domain", type: "string", default: "cluster.local", commands: SERVER, help: "the cluster's domain" },
  { name: "overlay", type: "string", default: "vxlan", commands: SERVER, help: "how pods reach those of other nodes: vxlan; host-gw, if all nodes are in one segment; none, if something else sees to it" },
  { name: "service-node-port-range", type: "string", default: "30000-32767", commands: SERVER, help: "ports for NodePort services" },
  { name: "disable", type: "list", commands: SERVER, help: `parts not to run, comma separated: ${PARTS.join(", ")}` },
  { name: "disable-agent", type: "boolean", default: false, commands: SERVER, help: "no node on this machine: only the control plane" },
  { name: "datastore-endpoint", type: "string", commands: SERVER, help: "etcd endpoints, comma separated, instead of the built-in store: https://host:port, http://host:port or unix:///path" },
  { name: "datastore-cafile", type: "string", commands: SERVER, help: "PEM file: who signs etcd's certificates; default: whom the system trusts" },
  { name: "datastore-certfile", type: "string", commands: SERVER, help: "PEM file: the certificate this server shows to etcd" },
  { name: "datastore-keyfile", type: "string", commands: SERVER, help: "PEM file: its key" },
  { name: "secrets-encryption", type: "boolean", default: false, commands: SERVER, help: "encrypt Secrets in the store, under a key in the data directory; see coracle secrets-encrypt" },
  { name: "snapshot-every", type: "string", commands: SERVER, help: "take a snapshot this often, as 30m, 12h or 7d; 0: never; default: 24h, never with --datastore-endpoint; see coracle snapshot" },
  { name: "snapshot-keep", type: "integer", default: 5, commands: SERVER, help: "how many of them are kept" },
  { name: "snapshot-dir", type: "string", commands: SERVER, help: "where snapshots are kept; default: server/snapshots in the data directory" },
  { name: "mend-store", type: "boolean", default: true, commands: SERVER, help: "make a sound store of a damaged one at the start, of what can be read and the newest snapshot; false: do not start, and say what is wrong" },
  { name: "write-kubeconfig", type: "string", default: "/etc/coracle/coracle.yaml", commands: SERVER, help: "where the admin's kubeconfig is written" },
  { name: "write-kubeconfig-mode", type: "string", default: "0600", commands: SERVER, help: "its mode" },
  { name: "kube-apiserver-arg", type: "list", commands: SERVER, help: "k=v, a setting of the API server under upstream's name" },
  {
    name: "kube-controller-manager-arg", type: "list", commands: SERVER,
    help: "k=v, a setting of the controllers under upstream's name: node-monitor-grace-period, horizontal-pod-autoscaler-sync-period, cluster-signing-duration, concurrent-deployment-syncs …",
  },
  { name: "kube-scheduler-arg", type: "list", commands: SERVER, help: "k=v, a setting of the scheduler under upstream's name: config=FILE" },
  { name: "scheduler-config", type: "string", commands: SERVER, help: "file with a KubeSchedulerConfiguration: profiles, plugins, extenders" },
  { name: "server", type: "string", commands: ["agent", "simulate"], help: "https://host:port of the server to join; several, comma separated, for when one is away" },
  { name: "node-name", type: "string", commands: BOTH, help: "default: the host name at the first start" },
  { name: "node-ip", type: "list", commands: BOTH, help: "address of this node, or one of each family; default: of the interface with the default route; 0.0.0.0 or ::, one address, of that family where there is one" },
  { name: "node-label", type: "list", commands: ALL, help: "k=v, set when the node registers" },
  { name: "node-taint", type: "list", commands: ALL, help: "k=v:Effect, set when the node registers; default on Windows: os=windows:NoSchedule" },
  { name: "nodeport-addresses", type: "list", commands: BOTH, help: "ranges of this node's addresses at which NodePorts answer, or primary: the node's own; default: all of them" },
  { name: "default-local-storage-path", type: "string", commands: BOTH, help: "where volumes of the class local-path are kept; default: storage in the data directory" },
  { name: "container-runtime-endpoint", type: "string", commands: BOTH, help: "a CRI socket to use instead of the bundled containerd" },
  { name: "private-registry", type: "string", default: `${ROOT}/etc/coracle/registries.yaml`, commands: BOTH, help: "file with mirrors, certificates and credentials of image registries; need not be there" },
  { name: "kubelet-port", type: "port", default: 10250, commands: BOTH, help: "port of the node's own API" },
  { name: "kubelet-arg", type: "list", commands: BOTH, help: "k=v, a setting of the kubelet under upstream's name" },
  { name: "kube-proxy-arg", type: "list", commands: BOTH, help: "k=v, a setting of the service proxy under upstream's name: metrics-bind-address, conntrack-max-per-core …" },
  { name: "windows-service", type: "boolean", default: false, commands: ["agent"], help: "Windows only: this process was started by the service manager; it logs to <data-dir>/agent/coracle.log" },
  { name: "kubeconfig", type: "string", commands: ["simulate"], help: "instead of --server and --token: all hollow nodes speak in this file's name, over one connection" },
  { name: "node-prefix", type: "string", default: "hollow", commands: ["simulate"], help: "hollow nodes are named <prefix>-0, <prefix>-1 …" },
  { name: "nodes", type: "integer", default: 1, commands: ["simulate"], help: "how many hollow nodes to join" },
] as const satisfies readonly Flag[];

type Named<N extends string> = Extract<(typeof FLAGS)[number], { name: N }>;
type ValueOf<F> = F extends { type: "list" } ? readonly string[]
  : F extends { type: "boolean" } ? boolean
  : F extends { type: "integer" | "port" } ? (F extends { default: number } ? number : number | undefined)
  : F extends { default: string } ? string : string | undefined;

/** Every flag's value under its name in camelCase: `--data-dir` is `dataDir`. */
export type Settings = Readonly<{ [N in (typeof FLAGS)[number]["name"] as CamelCase<N>]: ValueOf<Named<N>> }>;
type CamelCase<S extends string> = S extends `${infer Head}-${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : S;

export function camelCase(name: string): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export function variableOf(name: string): string {
  return `CORACLE_${name.replaceAll("-", "_").toUpperCase()}`;
}
