import type { ObjectReference } from "../../../core/api/gen/core.v1.ts";

/** The node in the kubelet's events: with its name for a uid, under which kubectl describe looks for them. */
export function nodeReference(name: string): ObjectReference { return { apiVersion: "v1", kind: "Node", name, uid: name }; }
