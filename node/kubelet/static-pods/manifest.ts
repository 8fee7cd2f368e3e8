/**
 * A pod from a file on this machine: the manifest, named after the node, and complete and valid as if the API server had taken it in.
 *
 * Source: kubernetes v1.36 pkg/kubelet/config/{common,file}.go
 */
import { createHash } from "node:crypto";
import { decodeBody } from "../../../core/api/codec/body.ts";
import { stringify } from "../../../core/api/codec/json.ts";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { timestamp } from "../../../core/lifecycle/clock.ts";
import { CONFIG_SEEN, CONFIG_SOURCE } from "../pod-spec.ts";

export const CONFIG_HASH = "kubernetes.io/config.hash";
export const CONFIG_MIRROR = "kubernetes.io/config.mirror";

/** Fills in what the API server would, and throws an Error when it would not take the pod. */
export type CompletePod = (pod: Pod) => void;

interface Origin { readonly nodeName: string; readonly path: string; readonly nowMs: number; readonly complete: CompletePod }

/** Throws an Error when the text is no pod, or none that can run from a file. The same pod gives the same uid, however it is written. */
export function podFromManifest(text: string, { nodeName, path, nowMs, complete }: Origin): Pod {
  const { object } = decodeBody({ bytes: Buffer.from(text), encoding: "yaml", expected: { group: "", version: "v1", kind: "Pod" }, fieldValidation: "Ignore" });
  const { metadata: { name, namespace, uid, labels, annotations }, spec } = object as unknown as Pod;
  if (!name) throw new Error("invalid pod: name is needed for the pod");
  const hash = uid || createHash("md5").update(`${stringify(object)}host:${nodeName}file:${path}`).digest("hex");
  const anything = { operator: "Exists" as const, effect: "NoExecute" as const }; // nothing evicts what no controller would bring back, nor for how long it was to stay
  const given = (spec.tolerations ?? []).map((one) => (!one.key && !one.value && one.operator === anything.operator && one.effect === anything.effect ? anything : one));
  const pod: Pod = {
    apiVersion: "v1", kind: "Pod",
    metadata: {
      name: `${name}-${nodeName.toLowerCase()}`, namespace: namespace || "default", uid: hash, resourceVersion: "", creationTimestamp: timestamp(nowMs), labels,
      annotations: { ...annotations, [CONFIG_HASH]: hash },
    },
    spec: { ...spec, nodeName, tolerations: given.includes(anything) ? given : [...given, anything] }, status: { phase: "Pending" },
  };
  complete(pod);
  return { ...pod, metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, [CONFIG_SEEN]: new Date(nowMs).toISOString(), [CONFIG_SOURCE]: "file" } } };
}
