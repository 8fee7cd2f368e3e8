/** Makes what the parts of the kubelet that act on pods have in common (context.ts). Nothing of it is called before the kubelet runs. */
import type { Pod } from "../../core/api/gen/core.v1.ts";
import type { Client } from "../../core/client/client.ts";
import type { EventRecorder } from "../../core/client/events.ts";
import { SERVICE_ACCOUNTS } from "../../core/client/resources.ts";
import { noSpans } from "../../core/observe/spans.ts";
import type { KubeletContext } from "./context.ts";
import type { Puller } from "./images/credential-provider.ts";
import type { PullRecords } from "./images/pull-records.ts";
import { imagePuller } from "./images/puller.ts";
import type { KubeletDeps } from "./kubelet-deps.ts";
import { kubeletMetrics } from "./kubelet-metrics.ts";
import type { NodeAgent } from "./node/node-agent.ts";
import type { PodObjects } from "./objects/pod-objects.ts";
import type { NodePlugins } from "./plugins/node-plugins.ts";
import { isStaticPod } from "./pod-spec.ts";
import type { Machine } from "./resources/linux-resources.ts";
import { podCgroups } from "./resources/pod-cgroups.ts";
import { runtimeHandlers } from "./sandbox/runtime-handlers.ts";
import { userNamespaces } from "./sandbox/user-namespaces.ts";
import { startsAtATime, startTurns } from "./start-turns.ts";
import type { PodCertificates } from "./volumes/pod-certificates.ts";
import type { TokenSource } from "./volumes/service-account-token.ts";
import { volumeMetrics } from "./volumes/volume-metrics.ts";
import { volumeManager } from "./volumes/volumes.ts";

interface Parts {
  readonly events: EventRecorder;
  readonly objects: PodObjects;
  readonly tokens: TokenSource;
  readonly certificates: PodCertificates;
  readonly plugins: NodePlugins;
  readonly node: NodeAgent;
  /** Of images that were pulled; absent: nobody asks. */
  readonly records: PullRecords | undefined;
  /** The kubelet's. */
  readonly life: AbortSignal;
}

export function kubeletContext(deps: KubeletDeps, { events, objects, tokens, certificates, plugins: { csi, devices, claims, expander, placement }, node, records, life }: Parts): KubeletContext {
  const { settings, client, cri, clock, random, log, machine, metrics, mounts } = deps;
  const counted = kubeletMetrics(metrics, settings.nodeName);
  return {
    settings, cri, clock, random, log, events, mounts, exec: deps.exec, objects, services: deps.services, devices, claims, placement, machine: limitingMachine(deps), credentialProviders: deps.credentialProviders,
    pullIdentity: (pod, signal) => pullIdentity(pod, { client, tokens, signal }),
    volumes: volumeManager({
      dataDir: settings.dataDir, nodeName: settings.nodeName, node: node.current, client, objects, tokens, certificates, mounts, exec: deps.exec, clock, random, events,
      log, hostIps: settings.nodeIps, allocatable: node.allocatable, csi, expander, metrics: volumeMetrics(metrics), life, onInUse: () => node.refresh(),
    }),
    images: imagePuller({ cri, clock, events, serialize: settings.serializeImagePulls, parallelMax: settings.maxParallelImagePulls, records, onPulled: counted.imagePulled, onEnsured: counted.imageEnsured }),
    starts: startTurns({ max: startsAtATime(machine), clock }),
    cgroups: podCgroups(deps.cgroups, { cgroupRoot: settings.cgroupRoot, pidsMax: settings.podPidsLimit > 0 ? settings.podPidsLimit : undefined, quota: settings.cpuQuota, hugepageSizes: machine.hugepages.map(({ size }) => size) }),
    handlers: runtimeHandlers(client), userNamespaces: userNamespaces({ ...settings, idsPerPod: settings.userNamespaceIds, random, log }),
    runtimeName: node.runtimeName, handlerFeatures: node.handlerFeatures, allocatable: node.allocatable, networkProblem: node.networkProblem, metrics: counted, spans: deps.spans ?? noSpans,
  };
}

/** In whose name the pod's images are pulled. Undefined: in nobody's. */
async function pullIdentity(pod: Pod, { client, tokens, signal }: { readonly client: Client; readonly tokens: TokenSource; readonly signal: AbortSignal }): Promise<Puller | undefined> {
  const { serviceAccountName: name } = pod.spec;
  if (!name || isStaticPod(pod)) return undefined;
  const { metadata } = await client.resource(SERVICE_ACCOUNTS).get({ metadata: { name, namespace: pod.metadata.namespace } }, { signal });
  return { account: { namespace: metadata.namespace ?? "", name, uid: metadata.uid }, annotations: metadata.annotations ?? {}, token: (audience) => tokens.token(pod, { path: "", audience }) };
}

/** What the limits of containers are computed from. */
function limitingMachine({ machine: { os, cpus, throttlePaths, appArmor, memoryBytes, swapBytes, hugepages }, cgroups: { version, countsSwap }, settings }: KubeletDeps): Machine {
  return {
    os, cpus, throttlePaths, appArmor, memoryBytes, cpuQuota: settings.cpuQuota, hugepageSizes: hugepages.map(({ size }) => size), killsWholeContainer: version === 2 && !settings.singleProcessOomKill,
    countsSwap, podSwapBytes: version === 2 && countsSwap ? (settings.limitedSwap ? swapBytes : 0) : undefined,
  };
}
