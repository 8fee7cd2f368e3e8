/**
 * The tree of cgroups pods live in:
 *
 *   /kubepods                     everything pods may use together
 *   /kubepods/pod<uid>            a Guaranteed pod
 *   /kubepods/burstable/pod<uid>
 *   /kubepods/besteffort/pod<uid>
 *
 * The runtime makes a container's cgroup below its pod's; the limits of the pod as a whole are set here, and the pod's cgroup is removed here,
 * for the runtime does neither.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/{pod_container_manager_linux,qos_container_manager_linux,helpers_linux,node_container_manager_linux}.go
 */
import { posix } from "node:path";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { CgroupLimits, Cgroups } from "../../os/cgroup.ts";
import type { PodsShare } from "../node/capacity.ts";
import { CPU_QUOTA, type CpuQuota, cpuQuota, cpuShares, podHugepages } from "./linux-resources.ts";
import { isLimited, podLimits, podRequests, qosClass } from "./pod-resources.ts";

interface EnsureOptions { readonly unlimitedCpu?: boolean | undefined; readonly widen?: boolean | undefined }

export interface PodCgroups {
  /** The root, with what all pods together may use, and the classes of service. Throws if the kernel does not limit that; the groups are there all the same. */
  setUp(share: PodsShare): void;
  pathOf(pod: Pod): string;
  /** The groups above those of pods. */
  readonly roots: readonly string[];
  /**
   * Makes the pod's cgroup, or brings its limits up to date. `unlimitedCpu`: it has processors for itself, and those are its limit. `widen`: no limit becomes
   * narrower, for containers in it still have more.
   */
  ensure(pod: Pod, options?: EnsureOptions): void;
  /** What that would change of a pod that has limits already. */
  change(pod: Pod, options?: EnsureOptions): { readonly before: CgroupLimits; readonly limits: CgroupLimits } | undefined;
  /** Memory that the pod, or one of its containers, uses now. */
  memoryBytes(pod: Pod, containerId?: string): number | undefined;
  /** Those that were set last. */
  limits(podUid: string): CgroupLimits | undefined;
  /** Removes the cgroup of the pod with this uid, wherever it is. False if something still lived in it, which is killed: containers have ended, so it is what a runtime has lost. */
  remove(podUid: string): boolean;
  /** What burstable pods may expect together, from all that run. */
  balance(pods: Iterable<Pod>): void;
}

interface Options {
  readonly cgroupRoot: string;
  readonly pidsMax?: number | undefined;
  readonly quota?: CpuQuota | undefined;
  readonly hugepageSizes?: readonly string[] | undefined;
}

/** `pidsMax`: processes and threads a pod may have; absent: as many as the node. `hugepageSizes`: those of this machine, as the kernel names them. */
export function podCgroups(cgroups: Cgroups, { cgroupRoot, pidsMax, quota = CPU_QUOTA, hugepageSizes = [] }: Options): PodCgroups {
  const root = posix.join("/", cgroupRoot, "kubepods");
  const classes = { Guaranteed: root, Burstable: posix.join(root, "burstable"), BestEffort: posix.join(root, "besteffort") };
  const done = new Map<string, CgroupLimits>(); // by pod uid, so that nothing is written twice

  function limitsOf(pod: Pod, { unlimitedCpu = false, widen = false }: EnsureOptions = {}): CgroupLimits {
    const wanted: CgroupLimits = { ...podCgroupLimits(pod, quota), ...(unlimitedCpu ? { cpuQuotaUs: -1 } : {}), ...(pidsMax === undefined ? {} : { pids: pidsMax }), ...(hugepageSizes.length === 0 ? {} : { hugepages: podHugepages(pod, hugepageSizes) }) };
    if (!widen) return wanted;
    const before = done.get(pod.metadata.uid) ?? asFound(pathOf(pod), wanted);
    return before ? widest(before, wanted) : wanted;
  }

  /** Where an earlier kubelet has set the limits, what runs of the pod may have more memory still, and would be ended for it. Undefined: it has no group. */
  function asFound(path: string, wanted: CgroupLimits): CgroupLimits | undefined {
    const text = cgroups.text(path, "memory", cgroups.version === 2 ? "memory.max" : "memory.limit_in_bytes");
    if (text === undefined) return undefined;
    const { memoryBytes: _, ...rest } = wanted, memoryBytes = Number(text);
    return memoryBytes < UNLIMITED_BYTES ? { ...rest, memoryBytes } : rest;
  }

  function pathOf(pod: Pod): string { return posix.join(classes[qosClass(pod)], `pod${pod.metadata.uid}`); }

  return {
    roots: [root, classes.Burstable, classes.BestEffort],
    setUp({ memoryBytes, milliCpu, pids }) {
      cgroups.ensure(classes.BestEffort, { cpuShares: cpuShares(0) });
      cgroups.ensure(classes.Burstable, cgroups.exists(classes.Burstable) ? {} : { cpuShares: cpuShares(0) }); // pods that run keep what they have until it is known who they are: the API server may be away
      cgroups.ensure(root, { cpuShares: cpuShares(milliCpu), memoryBytes, ...(pids === undefined ? {} : { pids }) }); // last: the kernel may refuse it
    },
    pathOf,
    change(pod, options) {
      const before = done.get(pod.metadata.uid);
      const limits = limitsOf(pod, options);
      return before && JSON.stringify(before) !== JSON.stringify(limits) ? { before, limits } : undefined;
    },
    ensure(pod, options) {
      const limits = limitsOf(pod, options);
      if (JSON.stringify(done.get(pod.metadata.uid)) === JSON.stringify(limits)) return;
      cgroups.ensure(pathOf(pod), limits);
      done.set(pod.metadata.uid, limits);
    },
    remove(podUid) {
      done.delete(podUid);
      const paths = Object.values(classes).map((parent) => posix.join(parent, `pod${podUid}`));
      const left = paths.filter((path) => !cgroups.remove(path));
      for (const path of left) cgroups.kill(path);
      return left.length === 0;
    },
    memoryBytes(pod, containerId) {
      const path = pathOf(pod);
      const below = containerId === undefined ? undefined : cgroups.children(path).find((name) => name.includes(containerId));
      if (containerId !== undefined && below === undefined) return undefined;
      return cgroups.usage(below === undefined ? path : posix.join(path, below))?.memoryBytes;
    },
    limits: (podUid) => done.get(podUid),
    balance(pods) {
      const milli = [...pods].filter((pod) => qosClass(pod) === "Burstable").reduce((sum, pod) => sum + (podRequests(pod).get("cpu")?.milliNumber() ?? 0), 0);
      cgroups.ensure(classes.Burstable, { cpuShares: cpuShares(milli) });
    },
  };
}

/** Version 1 tells of no limit with a number: the largest there is, in whole pages. Version 2 tells "max". */
const UNLIMITED_BYTES = 2 ** 62;

/** Of each the wider; none is the widest. */
function widest(a: CgroupLimits, b: CgroupLimits): CgroupLimits {
  const [quota, other] = [a.cpuQuotaUs ?? -1, b.cpuQuotaUs ?? -1];
  const { memoryBytes: _, ...rest } = b;
  return {
    ...rest, ...(a.cpuQuotaUs === undefined && b.cpuQuotaUs === undefined ? {} : { cpuQuotaUs: quota < 0 || other < 0 ? -1 : Math.max(quota, other) }),
    ...(a.memoryBytes === undefined || b.memoryBytes === undefined ? {} : { memoryBytes: Math.max(a.memoryBytes, b.memoryBytes) }),
  };
}

/** A limit binds the pod when whatever runs of it has one. */
export function podCgroupLimits(pod: Pod, { on, periodUs }: CpuQuota = CPU_QUOTA): CgroupLimits {
  const limits = podLimits(pod);
  const requested = podRequests(pod).get("cpu")?.milliNumber() ?? 0;
  const qos = qosClass(pod);
  const cpu = isLimited(pod, "cpu") ? limits.get("cpu")?.milliNumber() ?? 0 : 0;
  const memory = isLimited(pod, "memory") ? limits.get("memory")?.number() ?? 0 : 0;
  return {
    cpuShares: qos === "BestEffort" ? cpuShares(0) : cpuShares(requested), ...(qos !== "BestEffort" && cpu > 0 ? { cpuQuotaUs: on ? cpuQuota(cpu, periodUs) : -1, cpuPeriodUs: periodUs } : {}),
    ...(qos !== "BestEffort" && memory > 0 ? { memoryBytes: memory } : {}),
  };
}
