/** Names of the objects from which a machine learns what it joins: the server writes them (core/server/join-objects.ts), agents read them (node/join). */
/** The server's address and CA, as kubeadm has it; everyone may read it. */
export const CLUSTER_INFO = Object.freeze({ metadata: Object.freeze({ name: "cluster-info", namespace: "kube-public" }) });

/** The settings all nodes share, by flag name; nodes may read it. */
export const CLUSTER_SETTINGS = Object.freeze({ metadata: Object.freeze({ name: "coracle-cluster", namespace: "kube-system" }) });

/** By node name, what core/pki/revocation.ts says: whose certificates are no longer accepted. */
export const REVOKED_NODES = Object.freeze({ metadata: Object.freeze({ name: "coracle-revoked-nodes", namespace: "kube-system" }) });

/** Where nodes have their Leases, each by its name. */
export const NODE_LEASES = "kube-node-lease";

/** The key of CLUSTER_SETTINGS for the certificates that may have signed a caller's, PEM. */
export const CLIENT_CA_KEY = "client-ca.crt";

/** And for those that may have signed a server's. */
export const SERVER_CA_KEY = "server-ca.crt";
