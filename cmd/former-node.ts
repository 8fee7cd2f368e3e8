/** A server that is to have no node, on a machine that was one: the containers of before, which outlive us, go on there, and nobody looks after them. */
import { realpathSync } from "node:fs";
import type { Log } from "../core/observe/log.ts";
import { runtimeSocket } from "../node/runtime/paths.ts";
import { shimsOf } from "../node/runtime/shims.ts";
import type { Paths } from "./paths.ts";

export function tellOfFormerNode({ dataDir }: Pick<Paths, "dataDir">, log: Pick<Log, "warn">): void {
  if (process.platform !== "linux") return;
  const pods = shimsOf(runtimeSocket(realpathSync(dataDir))).length;
  if (pods > 0) log.warn("this machine was a node, and has none now: its pods go on, and nobody looks after them. To end them: coracle-uninstall --node; if the node is not to come back: coracle kubectl delete node NAME", { pods });
}
