/**
 * Puts a ConfigMap kube-root-ca.crt into every Namespace, so that pods can verify the API server.
 *
 * Source: kubernetes v1.36 pkg/controller/certificates/rootcacertpublisher
 */
import type { ConfigMap } from "../../api/gen/core.v1.ts";
import { annotationsOf, isDeleting, keyOf, namespaceOf, type NewObject, objectKey } from "../../api/meta/object-meta.ts";
import { isAlreadyExists, isNamespaceTerminating, isNotFound, StatusError } from "../../api/meta/status-error.ts";
import { CONFIG_MAPS, NAMESPACES } from "../../client/resources.ts";
import { doubling } from "../../observe/metrics.ts";
import { type Controller, itself, mapped, whenTold } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { measured } from "../measured-controller.ts";
import { canonical } from "../template-hash.ts";

const NAME = "kube-root-ca.crt";
const DESCRIPTION = "kubernetes.io/description";
const TEXT = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or "
  + "kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

interface Deps extends Pick<ControllerDeps, "client" | "informers" | "clock" | "metrics"> {
  readonly rootCa: () => string;
  /** Whenever it may be another. Returns what ends that. */
  readonly onRootCa?: ((handler: () => void) => () => void) | undefined;
}

/** Kept apart by what the API server said. Source: kubernetes v1.36 pkg/controller/certificates/rootcacertpublisher/metrics.go */
export function rootCaController({ clock, metrics, ...deps }: Deps): Controller {
  const controller = publisher(deps);
  if (!metrics) return controller;
  const syncs = metrics.counter("root_ca_cert_publisher_sync_total", "[ALPHA] Number of namespace syncs happened in root ca cert publisher.");
  const took = metrics.histogram("root_ca_cert_publisher_sync_duration_seconds", "[ALPHA] Number of namespace syncs happened in root ca cert publisher.", doubling(0.001, 15));
  return measured(controller, clock, (seconds, error) => {
    const code = error === undefined ? "200" : String(error instanceof StatusError ? error.status.code ?? 500 : 500);
    syncs.inc({ code });
    took.observe(seconds, { code });
  });
}

function publisher({ client, informers, rootCa, onRootCa }: Pick<Deps, "client" | "informers" | "rootCa" | "onRootCa">): Controller {
  const namespaces = informers.of(NAMESPACES);
  const maps = informers.of(CONFIG_MAPS, { fieldSelector: `metadata.name=${NAME}` });
  const mapClient = client.resource(CONFIG_MAPS);
  return {
    name: "root_ca_cert_publisher",
    workers: 1,
    watches: [itself(namespaces), mapped(maps, ({ object }) => [objectKey("", namespaceOf(object))]), whenTold(onRootCa, () => [...namespaces.list()].map(keyOf))],
    async reconcile(key, { signal }) {
      const namespace = namespaces.get(key);
      if (namespace === undefined || isDeleting(namespace) || namespace.status?.phase === "Terminating") return;
      const name = namespace.metadata.name;
      const data = { "ca.crt": rootCa() };
      const held = maps.get(objectKey(name, NAME));
      try {
        if (held === undefined) {
          const draft: NewObject<ConfigMap> = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: NAME, namespace: name, annotations: { [DESCRIPTION]: TEXT } }, data };
          await maps.caughtUp([await mapClient.create(draft, { signal })], signal);
        } else if (canonical(held.data ?? {}) !== canonical(data) || (annotationsOf(held)[DESCRIPTION] ?? "") === "") {
          const next = { ...held, metadata: { ...held.metadata, annotations: { ...annotationsOf(held), [DESCRIPTION]: TEXT } }, data };
          await maps.caughtUp([await mapClient.update(next, { signal })], signal);
        }
      } catch (error) {
        if (!isAlreadyExists(error) && !isNotFound(error) && !isNamespaceTerminating(error)) throw error; // it is there, or the namespace is not
      }
    },
  };
}
