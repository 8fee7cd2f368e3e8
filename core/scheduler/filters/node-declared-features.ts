/** Keeps pods off nodes that have not declared what they need. Source: kubernetes v1.36 pkg/scheduler/framework/plugins/nodedeclaredfeatures */
import { featuresToRun } from "../../api/meta/declared-features.ts";
import { nodeChanged } from "../changes.ts";
import type { Filter } from "../plugin.ts";
import { unresolvable } from "../rejection.ts";

export const nodeDeclaredFeatures: Filter = {
  name: "NodeDeclaredFeatures",
  prepare({ pod }) {
    const wanted = featuresToRun(pod.spec);
    if (wanted.length === 0) return undefined;
    return { reject: ({ node }) => (wanted.every((feature) => node.status?.declaredFeatures?.includes(feature)) ? undefined : unresolvable("node(s) didn't match Pod's required features")) };
  },
  mayHelp: (pod, change) => nodeChanged(change, ({ status }) => status?.declaredFeatures ?? [])
    || (change.of === "pod" && change.object.metadata.uid === pod.metadata.uid && change.old !== undefined && !Bun.deepEquals(featuresToRun(change.old.spec), featuresToRun(change.object.spec))),
};
