/**
 * The labels and annotations under which the kubelet finds its sandboxes and containers again, after a restart too. Upstream's names: crictl,
 * metrics agents and log shippers read them.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kuberuntime/labels.go, staging/src/k8s.io/kubelet/pkg/types/labels.go
 */
import { parseJson, stringify } from "../../../core/api/codec/json.ts";
import type { Container, EphemeralContainer, LifecycleHandler, Pod } from "../../../core/api/gen/core.v1.ts";
import { checksumOf, dumpList } from "../go-dump.ts";

export const POD_NAME = "io.kubernetes.pod.name";
export const POD_NAMESPACE = "io.kubernetes.pod.namespace";
export const POD_UID = "io.kubernetes.pod.uid";
export const CONTAINER_NAME = "io.kubernetes.container.name";
const POD_DELETION_GRACE_PERIOD = "io.kubernetes.pod.deletionGracePeriod";
const POD_TERMINATION_GRACE_PERIOD = "io.kubernetes.pod.terminationGracePeriod";
const CONTAINER_HASH = "io.kubernetes.container.hash";
const CONTAINER_RESTART_COUNT = "io.kubernetes.container.restartCount";
const TERMINATION_MESSAGE_PATH = "io.kubernetes.container.terminationMessagePath";
const TERMINATION_MESSAGE_POLICY = "io.kubernetes.container.terminationMessagePolicy";
const PRE_STOP_HANDLER = "io.kubernetes.container.preStopHandler";
const CONTAINER_PORTS = "io.kubernetes.container.ports";

type Strings = Readonly<Record<string, string>>;

export function podLabels(pod: Pod): Record<string, string> {
  return { ...pod.metadata.labels, ...identity(pod) };
}

function identity(pod: Pod): Record<string, string> {
  return { [POD_NAME]: pod.metadata.name, [POD_NAMESPACE]: pod.metadata.namespace ?? "", [POD_UID]: pod.metadata.uid };
}

export function containerLabels(pod: Pod, container: Container | EphemeralContainer): Record<string, string> {
  return { ...identity(pod), [CONTAINER_NAME]: container.name };
}

export function containerAnnotations(pod: Pod, container: Container | EphemeralContainer, restartCount: number): Record<string, string> {
  const { deletionGracePeriodSeconds } = pod.metadata;
  const { terminationGracePeriodSeconds } = pod.spec;
  return {
    [CONTAINER_HASH]: containerHash(container), [CONTAINER_RESTART_COUNT]: String(restartCount),
    [TERMINATION_MESSAGE_PATH]: container.terminationMessagePath ?? "", [TERMINATION_MESSAGE_POLICY]: container.terminationMessagePolicy ?? "",
    ...(deletionGracePeriodSeconds === undefined ? {} : { [POD_DELETION_GRACE_PERIOD]: String(deletionGracePeriodSeconds) }),
    ...(terminationGracePeriodSeconds === undefined ? {} : { [POD_TERMINATION_GRACE_PERIOD]: String(terminationGracePeriodSeconds) }),
    ...(container.lifecycle?.preStop ? { [PRE_STOP_HANDLER]: stringify(container.lifecycle.preStop) } : {}),
    ...(container.ports?.length ? { [CONTAINER_PORTS]: JSON.stringify(container.ports) } : {}),
  };
}

/** What a container remembers of its spec, for a pod the API server no longer has. */
export interface RememberedSpec {
  readonly hash: string;
  readonly restartCount: number;
  readonly terminationMessagePath: string;
  readonly terminationMessagePolicy: string;
  readonly gracePeriodSeconds: number | undefined;
  readonly preStop: LifecycleHandler | undefined;
}

export function readAnnotations(annotations: Strings = {}): RememberedSpec {
  const grace = annotations[POD_DELETION_GRACE_PERIOD] ?? annotations[POD_TERMINATION_GRACE_PERIOD];
  const handler = annotations[PRE_STOP_HANDLER];
  return {
    hash: annotations[CONTAINER_HASH] ?? "", restartCount: Number(annotations[CONTAINER_RESTART_COUNT] ?? 0),
    terminationMessagePath: annotations[TERMINATION_MESSAGE_PATH] ?? "", terminationMessagePolicy: annotations[TERMINATION_MESSAGE_POLICY] ?? "",
    gracePeriodSeconds: grace === undefined ? undefined : Number(grace),
    preStop: handler === undefined ? undefined : (parseJson(handler).value as LifecycleHandler),
  };
}

/** Changes when the container must be made anew: its name or its image. As upstream reckons it (HashContainer): what a stock kubelet has started goes on. */
export function containerHash(container: Pick<Container, "name" | "image">): string {
  return checksumOf(`([]uint8)${dumpList(hashed(container))}`).toString(16);
}

function hashed({ name, image }: Pick<Container, "name" | "image">): Buffer { return Buffer.from(JSON.stringify({ image: image ?? "", name })); }

/** As earlier versions of ours reckoned it: what they have started goes on, too. */
function formerHash(container: Pick<Container, "name" | "image">): string { return checksumOf(hashed(container)).toString(16); }

/** Whether what has that hash was made of another definition. */
export function isOfOtherDefinition(hash: string, container: Pick<Container, "name" | "image">): boolean {
  return hash !== containerHash(container) && hash !== formerHash(container);
}
