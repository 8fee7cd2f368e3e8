/**
 * What a pod asks of a node: the sum of its containers, or the most any init container needs while it runs, whichever is more; plus overhead.
 * Sidecars (init containers that restart always) count with the containers and with the init containers started after them. While a container,
 * a sidecar or the pod is being resized where it is, the most of what it has, was promised and wants counts; a pod without a node has nothing yet.
 * Requests of the pod as a whole replace those of its containers.
 *
 * Source: kubernetes v1.36 component-helpers/resource/helpers.go
 */
import type { Container, ContainerStatus, Pod } from "../api/gen/core.v1.ts";
import { parseQuantity } from "../api/meta/quantity.ts";

/** Whole units: milli-CPUs, bytes, counts. Every resource that is asked for has an entry. */
export type Requests = Readonly<Record<string, number>>;

const NOTHING: Requests = {};

/** `missing`: what a container is taken to ask for that says nothing of it. */
export function podRequests({ spec, status }: Readonly<Pod>, missing: Requests = NOTHING): Requests {
  const held = spec.nodeName ? status : undefined;
  const statuses = new Map([...(held?.containerStatuses ?? []), ...(held?.initContainerStatuses ?? [])].map((one) => [one.name, one]));
  const infeasible = isResizeInfeasible(held);
  const requestsOf = (container: Container, resizable = true): Requests => containerRequests(container, resizable ? statuses.get(container.name) : undefined, infeasible, missing);
  const running: Record<string, number> = {};
  for (const container of spec.containers) add(running, requestsOf(container));
  const starting: Record<string, number> = {};
  const sidecars: Record<string, number> = {};
  for (const container of spec.initContainers ?? []) {
    const isSidecar = container.restartPolicy === "Always";
    const own = requestsOf(container, isSidecar);
    if (isSidecar) {
      add(running, own);
      add(sidecars, own);
    }
    for (const name in own) starting[name] = Math.max(starting[name] ?? 0, (sidecars[name] ?? 0) + (isSidecar ? 0 : own[name]!)); // of what others ask for the sidecars so far have raised it already
  }
  raise(running, starting);
  const whole = effective(amounts(spec.resources?.requests), held, infeasible);
  for (const name of Object.keys(spec.resources?.requests ?? {})) running[name] = whole[name] ?? 0;
  for (const [name, quantity] of Object.entries(spec.overhead ?? {})) running[name] = (running[name] ?? 0) + amount(name, quantity);
  return running;
}

/** What the pod wants to grow to it will not get where it is. */
export function isResizeInfeasible(status: Pod["status"]): boolean {
  return status?.conditions?.find(({ type }) => type === "PodResizePending")?.reason === "Infeasible";
}

function containerRequests({ resources }: Container, status: ContainerStatus | undefined, infeasible: boolean, missing: Requests): Requests {
  const own = effective(amounts(resources?.requests), status, infeasible);
  return missing === NOTHING ? own : { ...missing, ...own };
}

function effective(wanted: Record<string, number>, status: Pick<ContainerStatus, "resources" | "allocatedResources"> | undefined, infeasible: boolean): Requests {
  if (!status?.resources) return wanted;
  const most = infeasible ? {} : wanted;
  raise(most, amounts(status.resources?.requests));
  raise(most, amounts(status.allocatedResources));
  return most;
}

export function amounts(list: Readonly<Record<string, string>> | null | undefined): Record<string, number> {
  const out: Record<string, number> = {};
  for (const name in list ?? {}) out[name] = amount(name, list![name]!);
  return out;
}

function amount(name: string, quantity: string): number {
  const parsed = parseQuantity(quantity);
  return name === "cpu" ? parsed.milliNumber() : parsed.number();
}

function add(to: Record<string, number>, more: Requests): void {
  for (const name in more) to[name] = (to[name] ?? 0) + more[name]!;
}

function raise(to: Record<string, number>, least: Requests): void {
  for (const name in least) to[name] = Math.max(to[name] ?? 0, least[name]!);
}

/** What scores assume of a container that asks for nothing. */
const DEFAULT_MILLI_CPU = 100;
const DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024;

/** What scores think a pod takes. `requests`: of the pod. Source: pkg/scheduler/framework/types.go CalculateResource, pkg/scheduler/util/pod_resources.go */
export function assumedRequests(pod: Readonly<Pod>, requests: Requests): { readonly cpu: number; readonly memory: number } {
  const { spec, status } = pod;
  const isWhole = Object.keys(spec.resources?.requests ?? {}).length > 0; // then its containers are taken to ask for nothing only where all of them say nothing
  const isDenied = spec.nodeName !== undefined && isResizeInfeasible(status); // then they may have nothing of what they ask for
  const lacks = (name: string): boolean => (isWhole ? requests[name] === undefined : isDenied || [...spec.containers, ...(spec.initContainers ?? [])].some(({ resources }) => resources?.requests?.[name] === undefined));
  const missing = { ...(lacks("cpu") ? { cpu: DEFAULT_MILLI_CPU } : {}), ...(lacks("memory") ? { memory: DEFAULT_MEMORY_BYTES } : {}) };
  const { cpu = 0, memory = 0 } = missing.cpu === undefined && missing.memory === undefined ? requests : podRequests(pod, missing);
  return { cpu, memory };
}

/** What a pod that is to be placed takes, to the score on how full nodes would be: its containers alone, whatever it asks for as a whole. Source: noderesources/fit.go NewFit, whose scorer is not told of requests of pods */
export function scoredRequests(pod: Readonly<Pod>, requests: Requests): Requests {
  if (!pod.spec.resources?.requests) return { ...requests, ...assumedRequests(pod, requests) };
  const ofContainers = { ...pod, spec: { ...pod.spec, resources: undefined } } as unknown as Pod;
  const alone = podRequests(ofContainers);
  return { ...alone, ...assumedRequests(ofContainers, alone) };
}
