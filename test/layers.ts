/**
 * Which folder may import which, and which may use which package.
 *
 * Read it top to bottom: a row may name only rows above it, so there can be no cycle.
 * Imports follow the request (server → … → storage). Data comes back by watch, never by import.
 */
const base = ["core/lifecycle", "core/observe"];                     // clocks, lives, logs, metrics
const caller = [...base, "core/api", "core/client"];                 // sees the cluster only through the API

export const LAYERS: Record<string, readonly string[]> = {
  "core/protobuf":    [],
  "storage":          ["core/protobuf"],
  "core/lifecycle":   [],
  "core/observe":     ["core/lifecycle", "core/protobuf"],
  "core/api":         ["core/lifecycle", "core/protobuf"],
  "core/cel":         ["core/api"],
  "core/net":         base,
  "core/pki":         [...base, "core/net"],
  "core/registry":    [...base, "core/api", "core/cel", "core/pki", "storage"],  // the only row that names storage
  "core/client":      [...base, "core/api", "core/net"],
  "core/authn":       [...caller, "core/net", "core/pki", "core/cel"],
  "core/authz":       [...caller, "core/net", "core/cel"],
  "core/admission":   [...caller, "core/net", "core/pki", "core/cel", "core/authz"],
  "core/tunnel":      [...base, "core/net", "core/protobuf"],
  "core/server":      [...caller, "core/net", "core/protobuf", "core/authn", "core/authz", "core/admission", "core/registry", "core/tunnel"],
  "core/scheduler":   [...caller, "core/net", "core/cel"],
  "core/ingress":     [...caller, "core/net"],                        // which request goes where
  "core/controllers": [...caller, "core/net", "core/pki", "core/ingress", "core/cel"],
  "core/dns":         [...caller, "core/net"],
  "node/os":          base,
  "node/cri":         [...base, "core/net", "core/protobuf"],
  "node/runtime":     [...base, "node/os", "node/cri"],
  "node/network":     [...caller, "core/net", "node/os", "node/cri"],
  "node/proxy":       [...caller, "core/net", "node/os"],
  "node/policy":      [...caller, "core/net", "node/os", "node/cri"],
  "node/ingress":     [...caller, "core/net", "core/pki", "core/ingress"],
  "node/tunnel":      [...base, "core/net", "core/tunnel"],
  "node/kubelet":     [...caller, "core/net", "core/pki", "node/os", "node/cri"],
  "node/join":        [...caller, "core/net", "core/pki"],
  "node/hollow":      [...caller, "core/net", "node/os", "node/cri", "node/kubelet"],
  "installers":       [],
  "cmd":              [ // the composition roots: the only places that see everything
    "storage", ...caller, "core/cel", "core/net", "core/pki", "core/registry", "core/authn", "core/authz", "core/admission", "core/tunnel", "core/server",
    "core/scheduler", "core/ingress", "core/controllers", "core/dns", "node/os", "node/cri", "node/runtime", "node/network", "node/proxy", "node/policy", "node/ingress", "node/tunnel", "node/kubelet", "node/join", "node/hollow",
  ],
};

/** Packages we depend on at run time: who may import each, and why we have it at all. */
export const PACKAGES: Record<string, { readonly rows: readonly string[]; readonly why: string }> = {
  "level":         { rows: ["storage"], why: "LevelDB: an embedded store that has survived more power cuts than anything we could write" },
  "msgpackr":      { rows: ["storage"], why: "values on flash at 40 % of their JSON size, decoded faster than JSON" },
  "@noble/ciphers/salsa.js": { rows: ["storage"], why: "secretbox, one of the ways Kubernetes encrypts at rest, is XSalsa20-Poly1305, which node:crypto has not; this one is audited" },
  "pino":          { rows: ["core/observe"], why: "structured logs with levels and safe serialization of errors" },
  "yaml":          { rows: ["core/api", "cmd", "installers"], why: "YAML as Kubernetes reads it needs a parser whose types can be set tag by tag" },
  "@grpc/grpc-js": { rows: ["node/cri", "core/net", "storage", "core/server"], why: "CRI, etcd and collectors of traces speak gRPC" },
  "re2js":         { rows: ["core/cel"], why: "patterns in users' schemas and rules are RE2: linear in time, and other in what they accept than JavaScript's" },
  "undici":        { rows: ["core/net"], why: "pooled HTTP connections with client certificates; Bun's own shim of it ignores TLS options" },
};
