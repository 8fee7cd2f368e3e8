/**
 * A pod from a file on this machine: the manifest, named after the node, with the defaults the API server would have set.
 *
 * Source: kubernetes v1.36 pkg/kubelet/config/{common,file}.go
 */
import { createHash } from "node:crypto";
import { parseYaml } from "../../../core/api/codec/yaml.ts";
import type { Container, Pod, PodSpec } from "../../../core/api/gen/core.v1.ts";
import { dns1123Subdomain } from "../../../core/api/meta/names.ts";
import { timestamp } from "../../../core/lifecycle/clock.ts";

export const CONFIG_HASH = "kubernetes.io/config.hash";
export const CONFIG_MIRROR = "kubernetes.io/config.mirror";
const CONFIG_SEEN = "kubernetes.io/config.seen";
const CONFIG_SOURCE = "kubernetes.io/config.source";

interface Origin { readonly nodeName: string; readonly path: string; readonly nowMs: number }

/** Throws an Error when the text is no pod. The same text gives the same uid. */
export function podFromManifest(text: string, { nodeName, path, nowMs }: Origin): Pod {
  const manifest = parseYaml(text) as unknown as Partial<Pod> | null;
  if (manifest?.kind !== "Pod" || manifest.apiVersion !== "v1") throw new Error(`${path}: not a v1 Pod`);
  const { name = "", namespace, uid, labels, annotations } = manifest.metadata ?? ({} as Partial<Pod["metadata"]>);
  const problems = dns1123Subdomain(name);
  if (problems.length > 0) throw new Error(`${path}: metadata.name ${JSON.stringify(name)}: ${problems.join(", ")}`);
  if (!manifest.spec?.containers?.length) throw new Error(`${path}: spec.containers is empty`);
  const hash = uid || createHash("md5").update(`${text}host:${nodeName}file:${path}`).digest("hex");
  return {
    apiVersion: "v1", kind: "Pod",
    metadata: {
      name: `${name}-${nodeName.toLowerCase()}`, namespace: namespace || "default", uid: hash, resourceVersion: "", creationTimestamp: timestamp(nowMs), labels,
      annotations: { ...annotations, [CONFIG_HASH]: hash, [CONFIG_SEEN]: new Date(nowMs).toISOString(), [CONFIG_SOURCE]: "file" },
    },
    spec: defaulted({ ...manifest.spec, nodeName }), status: { phase: "Pending" },
  };
}

function defaulted(spec: PodSpec): PodSpec {
  const container = (one: Container): Container => ({
    terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File", ...one, imagePullPolicy: one.imagePullPolicy ?? (/:latest$|^[^@:]*$|\/[^@:]*$/.test(one.image ?? "") ? "Always" : "IfNotPresent"),
  });
  return {
    restartPolicy: "Always", terminationGracePeriodSeconds: 30, dnsPolicy: "ClusterFirst", enableServiceLinks: true, schedulerName: "default-scheduler", securityContext: {}, ...spec,
    containers: spec.containers.map(container), ...(spec.initContainers ? { initContainers: spec.initContainers.map(container) } : {}),
    tolerations: [...(spec.tolerations ?? []), { operator: "Exists", effect: "NoExecute" }], // nothing evicts what no controller would bring back
  };
}
