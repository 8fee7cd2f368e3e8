import type { Pod } from "../../core/api/gen/core.v1.ts";
import type { KubeletContext, ResizeTrigger } from "./context.ts";
import type { ProbeManager } from "./probes/probe-manager.ts";
import type { Verdict } from "./resources/resize.ts";
import type { StatusWriter } from "./status/status-writer.ts";

export interface WorkerDeps {
  readonly context: KubeletContext;
  readonly statuses: StatusWriter;
  readonly probes: ProbeManager;
  readonly kubeletStartedMs: number;
  /** Takes the pod's object away: its containers are gone. */
  readonly deleteObject: (pod: Pod, signal: AbortSignal) => Promise<void>;
  /** Whether the manifest of this static pod is there again: what its containers were is not forgotten with its end. */
  readonly comesAgain: (uid: string) => boolean;
  /** A pod has ended or was resized: what it used may be free. */
  readonly onStage: (trigger: ResizeTrigger) => void;
  /** Whether the node can grant what the pod wishes now. */
  readonly judgeResize: (wish: Pod) => Verdict;
}
