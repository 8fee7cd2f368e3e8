/**
 * Pods that a node, by itself, treats alike are of one kind. Pods come in large numbers that are, and between two of them one node in a thousand has changed: so what a node says of a
 * kind is kept with it (NodeInfo.sayings) until it changes, and most nodes need not be asked again.
 *
 *   candidate ──Kinds.of──▶ Kind ──node.saying──▶ Saying: whether the filters that are `ofNode` take such a pod there, and what the scores that are `ofNode` give it
 */
import { stringify } from "../api/codec/json.ts";
import { hostPortsOf } from "../api/meta/host-ports.ts";
import type { Candidate } from "./candidate.ts";
import { isExtendedResource } from "./devices/extended-resources.ts";
import { scoredRequests } from "./pod-requests.ts";
import type { NodeRejection } from "./rejection.ts";

/** The same object for all pods of a kind. */
export interface Kind { readonly signature: string }

export interface Saying {
  rejection: NodeRejection | "fits" | undefined;
  /** The sum of the scores, each times its weight. */
  worth: number | undefined;
}

/** Told apart at a time; what nodes say of one that is forgotten is asked anew. */
const KINDS_MAX = 64;

export class Kinds {
  readonly #kinds = new Map<string, Kind>(); // least recently used first

  /** Undefined: devices may stand behind a resource, and so others than the node have a say. */
  of({ pod, requests }: Candidate): Kind | undefined {
    if (Object.keys(requests).some(isExtendedResource)) return undefined;
    const { spec } = pod;
    const signature = stringify([
      spec.schedulerName, spec.nodeName, spec.nodeSelector, spec.affinity?.nodeAffinity, spec.tolerations, requests, scoredRequests(pod, requests), [...hostPortsOf(spec)],
    ]);
    const kind = this.#kinds.get(signature) ?? { signature };
    this.#kinds.delete(signature);
    this.#kinds.set(signature, kind);
    if (this.#kinds.size > KINDS_MAX) this.#kinds.delete(this.#kinds.keys().next().value!);
    return kind;
  }
}
