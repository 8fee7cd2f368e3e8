import type { Node, ResourceList } from "../../../core/api/gen/core.v1.ts";
import type { Client } from "../../../core/client/client.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Random } from "../../../core/lifecycle/random.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Exec } from "../../os/exec.ts";
import type { Mounts } from "../../os/mount.ts";
import type { ObjectSource } from "../containers/environment.ts";
import type { CsiVolumes } from "../csi/csi-volumes.ts";
import type { ClaimExpander } from "./expand-claim.ts";
import type { PodCertificates } from "./pod-certificates.ts";
import type { TokenSource } from "./service-account-token.ts";
import type { VolumeMetrics } from "./volume-metrics.ts";

export interface VolumeDeps {
  readonly dataDir: string;
  readonly nodeName: string;
  readonly node: () => Pick<Node, "metadata">;
  readonly client: Client;
  readonly objects: ObjectSource;
  readonly tokens: TokenSource;
  readonly certificates: PodCertificates;
  readonly mounts: Mounts;
  readonly exec: Exec;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly hostIps: readonly string[];
  readonly allocatable: () => ResourceList;
  /** Absent: this node has no CSI drivers. */
  readonly csi?: CsiVolumes | undefined;
  readonly expander: ClaimExpander;
  readonly metrics: VolumeMetrics;
  /** Ends what goes on in the background. */
  readonly life: AbortSignal;
  /** status.volumesInUse changed. */
  readonly onInUse: () => void;
}
