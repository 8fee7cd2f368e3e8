/**
 * Keeps the one ClusterTrustBundle of the signer kubernetes.io/kube-apiserver-serving, where such are served: who signs the API server's certificate, for pods that mount it.
 *
 * Source: kubernetes v1.36 pkg/controller/certificates/clustertrustbundlepublisher
 */
import { createHash } from "node:crypto";
import type { ClusterTrustBundle } from "../../api/gen/certificates.v1beta1.ts";
import { formatApiVersion } from "../../api/meta/gvk.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { objectKey } from "../../api/meta/object-meta.ts";
import type { ResourceRef } from "../../client/client.ts";
import { settleAll } from "../../lifecycle/settle-all.ts";
import { type Controller, mapped, whenTold } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";

const SIGNER = "kubernetes.io/kube-apiserver-serving";
const ALL = "bundles" as ReturnType<typeof objectKey>;

interface Deps extends Pick<ControllerDeps, "client" | "informers"> {
  /** In the version in which they are served. */
  readonly resource: ResourceRef<ClusterTrustBundle>;
  /** PEM. */
  readonly rootCa: () => string;
  /** Whenever it may be another. Returns what ends that. */
  readonly onRootCa?: ((handler: () => void) => () => void) | undefined;
}

export function trustBundleController({ client, informers, resource, rootCa, onRootCa }: Deps): Controller {
  const bundles = informers.of(resource, { fieldSelector: `spec.signerName=${SIGNER}` });
  const bundleClient = client.resource(resource);
  return {
    name: "ca_cert_publisher_cluster_trust_bundles",
    workers: 1,
    starts: [ALL],
    watches: [mapped(bundles, () => [ALL]), whenTold(onRootCa, () => [ALL])],
    async reconcile(_, { signal }) {
      const trustBundle = rootCa(), name = bundleName(trustBundle), held = bundles.get(objectKey("", name));
      if (!held) await bundles.caughtUp([await bundleClient.create({ apiVersion: formatApiVersion(resource), kind: "ClusterTrustBundle", metadata: { name }, spec: { signerName: SIGNER, trustBundle } }, { signal })], signal);
      else if (held.spec.trustBundle !== trustBundle) await bundles.caughtUp([await bundleClient.update({ ...held, spec: { ...held.spec, trustBundle } }, { signal })], signal);
      await settleAll([...bundles.list()].filter(({ metadata }) => metadata.name !== name).map(async (other) => {
        await ifFound(bundleClient.delete(other, {}, { signal }));
      }));
    },
  };
}

/** Another bundle has another name. */
function bundleName(bundle: string): string { return `${SIGNER.replaceAll("/", ":")}:${createHash("sha256").update(bundle).digest().subarray(0, 12).toString("hex")}`; }
