/** Revisions of one template become one, and the pods made from them are its own: none is replaced. Source: kubernetes v1.36 pkg/controller/daemon/update.go dedupCurHistories */
import type { ControllerRevision, DaemonSet } from "../../api/gen/apps.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { labelsOf } from "../../api/meta/object-meta.ts";
import { CONTROLLER_REVISIONS, PODS } from "../../client/resources.ts";
import type { ControllerDeps } from "../deps.ts";
import type { History } from "../history.ts";
import { REVISION_HASH_LABEL } from "./pods.ts";

const hashOf = (object: Readonly<Pod> | Readonly<ControllerRevision>): string | undefined => labelsOf(object)[REVISION_HASH_LABEL];

/** What is old then. */
export async function mergeTwins(set: Readonly<DaemonSet>, { current, old, twins }: History, { client, informers, signal }: Pick<ControllerDeps, "client" | "informers"> & { readonly signal: AbortSignal }): Promise<History["old"]> {
  if (twins.length === 0) return old;
  const pods = informers.of(PODS);
  const hashes = new Set(twins.map(hashOf));
  const labels = { [REVISION_HASH_LABEL]: hashOf(current) };
  const theirs = [...pods.ownedBy(set.metadata.uid)].filter((pod) => hashes.has(hashOf(pod)));
  const moved = await Promise.all(theirs.map((pod) => client.resource(PODS).patch(pod, "application/merge-patch+json", { metadata: { labels } }, { signal })));
  await pods.caughtUp(moved, signal);
  for (const twin of twins) await ifFound(client.resource(CONTROLLER_REVISIONS).delete(twin, {}, { signal }));
  return old.filter((revision) => !twins.includes(revision));
}
