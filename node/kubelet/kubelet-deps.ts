import type { PodCertificateRequest } from "../../core/api/gen/certificates.v1beta1.ts";
import type { Node, Pod, Service } from "../../core/api/gen/core.v1.ts";
import type { Client } from "../../core/client/client.ts";
import type { Events } from "../../core/client/events.ts";
import type { Informer } from "../../core/client/informer.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import type { Spans } from "../../core/observe/spans.ts";
import type { Cri } from "../cri/client.ts";
import type { Cgroups } from "../os/cgroup.ts";
import type { Exec } from "../os/exec.ts";
import type { MachineInfo } from "../os/machine.ts";
import type { Mounts } from "../os/mount.ts";
import type { CredentialProviders } from "./images/credential-provider.ts";
import type { KubeletSettings } from "./settings.ts";
import type { ShutdownNotices } from "./shutdown/shutdown.ts";
import type { CompletePod } from "./static-pods/manifest.ts";

export interface KubeletDeps {
  readonly settings: KubeletSettings;
  readonly client: Client;
  /** Pods bound to this node: fieldSelector spec.nodeName=<node>. */
  readonly pods: Informer<Pod>;
  /** All nodes, or this one; without it the API server is asked each time. */
  readonly nodes?: Informer<Node> | undefined;
  /** Requests for certificates for pods of this node; asked for when there is a pod that wants one. */
  readonly certificateRequests: () => Informer<PodCertificateRequest>;
  /** All services, for the environment of containers. */
  readonly services: Informer<Service>;
  readonly cri: Cri;
  readonly cgroups: Cgroups;
  readonly mounts: Mounts;
  readonly exec: Exec;
  readonly machine: MachineInfo;
  /** Why the machine has no pod network yet. Absent: nobody knows. */
  readonly networkProblem?: (() => string | undefined) | undefined;
  /** Programs that know credentials of registries. */
  readonly credentialProviders?: CredentialProviders | undefined;
  /** For pods from files on this machine. Absent: they are taken as they are. */
  readonly completePod?: CompletePod | undefined;
  /** Who says that the machine goes down. Absent: nobody. */
  readonly shutdownNotices?: ShutdownNotices | undefined;
  readonly clock: Clock;
  /** The server's clock, where that is another machine's; undefined: not told yet. */
  readonly serverMs?: (() => number | undefined) | undefined;
  readonly random: Random;
  readonly log: Log;
  readonly events: Events;
  readonly metrics: Metrics;
  /** Absent: nobody collects traces. */
  readonly spans?: Spans | undefined;
}
