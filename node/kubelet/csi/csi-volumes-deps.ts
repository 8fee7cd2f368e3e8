import type { Client } from "../../../core/client/client.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Mounts } from "../../os/mount.ts";
import type { ClaimExpander } from "../volumes/expand-claim.ts";
import type { TokenSource } from "../volumes/service-account-token.ts";
import type { CsiDrivers } from "./drivers.ts";

export interface CsiVolumesDeps {
  readonly dataDir: string;
  readonly nodeName: string;
  readonly client: Client;
  readonly drivers: CsiDrivers;
  readonly mounts: Mounts;
  readonly tokens: TokenSource;
  readonly expander: ClaimExpander;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends what goes on in the background. */
  readonly signal: AbortSignal;
  /** A path of ours as drivers know it. */
  readonly known: (path: string) => string;
  /** status.volumesInUse changed. */
  readonly onInUse: () => void;
}
