/**
 * The subsets of an Endpoints object: addresses that offer the same ports, ready and not ready. No I/O.
 *
 * Source: kubernetes v1.36 pkg/controller/endpoint/endpoints_controller.go, pkg/api/v1/endpoints/util.go
 */
import type { EndpointAddress, EndpointPort, EndpointSubset, Pod, Service, ServicePort } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { compareText } from "../../api/meta/compare-text.ts";
import { isDeleting, namespaceOf } from "../../api/meta/object-meta.ts";
import { canonicalIp, hasAddress, hasOwnName, isHeadless, isIpv6, targetPorts } from "../endpointslice/service-endpoints.ts";
import { isReady } from "../pod-state.ts";
import { canonical } from "../template-hash.ts";

/** Addresses an Endpoints object holds at most; EndpointSlices hold them all. */
export const CAPACITY = 1000;

export function subsetsFor(service: Readonly<Service>, pods: readonly Readonly<Pod>[]): EndpointSubset[] {
  const subsets: EndpointSubset[] = [];
  const publishAll = service.spec.publishNotReadyAddresses === true;
  const portsFor = (service.spec.ports ?? []).map(() => new Map<number, EndpointPort[]>()); // one object for all who offer the same: ten thousand may
  for (const pod of pods) {
    if (!hasAddress(pod) || (isDeleting(pod) && !publishAll)) continue;
    const address = addressOf(service, pod);
    if (address === undefined) continue;
    const add = (ports: EndpointPort[]): void => void subsets.push(publishAll || isReady(pod) ? { addresses: [address], ports } : { notReadyAddresses: [address], ports });
    if ((service.spec.ports ?? []).length === 0) {
      if (isHeadless(service)) add([]);
      continue;
    }
    const targetPort = targetPorts(pod);
    for (const [i, servicePort] of (service.spec.ports ?? []).entries()) {
      const port = targetPort(servicePort);
      if (port === undefined) continue;
      const ports = portsFor[i]!.get(port) ?? [offeredPort(servicePort, port)];
      portsFor[i]!.set(port, ports);
      add(ports);
    }
  }
  return repackSubsets(subsets);
}

function offeredPort({ name, protocol = "TCP", appProtocol }: Readonly<ServicePort>, port: number): EndpointPort {
  return { ...(name ? { name } : {}), port, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) };
}

/** Of a Service whose slices are made without looking at pods: those of its first family. */
export function subsetsOf({ spec }: Readonly<Service>, slices: readonly Readonly<EndpointSlice>[]): EndpointSubset[] {
  const family = spec.ipFamilies?.[0];
  return repackSubsets(slices.filter(({ addressType }) => family === undefined || addressType === family).flatMap(({ endpoints, ports: offered }) => {
    const ports = (offered ?? []).flatMap(({ port, ...rest }): EndpointPort[] => (port === undefined ? [] : [{ ...rest, port }]));
    return (endpoints ?? []).map(({ addresses: [ip = ""], conditions, nodeName }): EndpointSubset => {
      const addresses: EndpointAddress[] = [{ ip, ...(nodeName ? { nodeName } : {}) }];
      return conditions?.ready === false ? { notReadyAddresses: addresses, ports } : { addresses, ports };
    });
  }));
}

/** The pod's address of the service's first family. */
function addressOf(service: Readonly<Service>, pod: Readonly<Pod>): EndpointAddress | undefined {
  const { spec: { clusterIP, ipFamilies: [family] = [] } } = service, { podIPs = [], podIP = "" } = pod.status ?? {};
  const first = podIPs.find(({ ip }) => ip)?.ip ?? podIP;
  const wanted = family !== undefined ? family === "IPv6" : isIpv6(clusterIP && clusterIP !== "None" ? clusterIP : first);
  const ip = podIPs.find((one) => one.ip && isIpv6(one.ip) === wanted)?.ip ?? (podIP !== "" && isIpv6(podIP) === wanted ? podIP : undefined);
  if (ip === undefined) return undefined;
  const { nodeName, hostname } = pod.spec;
  return {
    ip: canonicalIp(ip), ...(nodeName ? { nodeName } : {}), targetRef: { kind: "Pod", namespace: namespaceOf(pod), name: pod.metadata.name, uid: pod.metadata.uid },
    ...(hasOwnName(pod, service) && hostname ? { hostname } : {}),
  };
}

interface Member { readonly address: EndpointAddress; ready: boolean }

/** The same addresses and ports in as few subsets as can be, in one order whatever order they came in. An address that is said to be both is not ready; of two of one IP and pod the first counts. */
export function repackSubsets(subsets: readonly EndpointSubset[]): EndpointSubset[] {
  const byPort = new Map<string, { readonly port: EndpointPort | undefined; readonly members: Map<string, Member> }>();
  const first = new Map<string, EndpointAddress>();
  const keys = new Map<EndpointPort | undefined, string>();
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of subsets) {
    for (const port of ports.length === 0 ? [undefined] : ports) {
      const key = keys.get(port) ?? canonical(port ?? null);
      keys.set(port, key);
      const entry = byPort.get(key) ?? { port, members: new Map<string, Member>() };
      byPort.set(key, entry);
      for (const address of addresses) add(entry.members, address, true);
      for (const address of notReadyAddresses) add(entry.members, address, false);
    }
  }
  function add(members: Map<string, Member>, address: EndpointAddress, ready: boolean): void {
    const key = `${address.ip} ${address.targetRef?.uid ?? ""}`;
    if (!first.has(key)) first.set(key, address);
    const before = members.get(key);
    if (before === undefined) members.set(key, { address: first.get(key) ?? address, ready });
    else before.ready &&= ready;
  }
  const byMembers = Map.groupBy(byPort.values(), ({ members }) => byPort.size === 1 ? "" : [...members].map(([key, { ready }]) => `${key} ${ready}`).toSorted().join("\n"));
  return [...byMembers.values()].map((entries): EndpointSubset => {
    const members = [...(entries[0]?.members.values() ?? [])].toSorted((a, b) => compareText(a.address.ip, b.address.ip) || compareText(a.address.targetRef?.uid ?? "", b.address.targetRef?.uid ?? ""));
    const ports = entries.flatMap(({ port }) => (port === undefined ? [] : [port])).toSorted((a, b) => compareText(canonical(a), canonical(b)));
    const [ready, notReady] = [members.filter((one) => one.ready), members.filter((one) => !one.ready)];
    return {
      ...(ready.length > 0 ? { addresses: ready.map(({ address }) => address) } : {}), ...(notReady.length > 0 ? { notReadyAddresses: notReady.map(({ address }) => address) } : {}),
      ...(ports.length > 0 ? { ports } : {}),
    };
  }).toSorted((a, b) => compareText(canonical(a), canonical(b)));
}

/** No more than CAPACITY addresses, ready ones first, each subset keeping its share. */
export function truncateSubsets(subsets: readonly EndpointSubset[]): { readonly subsets: readonly EndpointSubset[]; readonly truncated: boolean } {
  const ready = subsets.reduce((sum, { addresses = [] }) => sum + addresses.length, 0);
  const notReady = subsets.reduce((sum, { notReadyAddresses = [] }) => sum + notReadyAddresses.length, 0);
  if (ready + notReady <= CAPACITY) return { subsets, truncated: false };
  const cutReady = ready > CAPACITY;
  const [room, total] = cutReady ? [CAPACITY, ready] : [CAPACITY - ready, notReady];
  let left = room;
  const share = (addresses: readonly EndpointAddress[]): EndpointAddress[] => {
    const kept = addresses.slice(0, Math.min(left, Math.ceil((addresses.length / total) * room)));
    left -= kept.length;
    return kept;
  };
  return {
    truncated: true,
    subsets: subsets.map(({ addresses = [], notReadyAddresses = [], ports = [] }) => {
      const [kept, keptNotReady] = cutReady ? [share(addresses), []] : [[...addresses], share(notReadyAddresses)];
      return { ...(kept.length > 0 ? { addresses: kept } : {}), ...(keptNotReady.length > 0 ? { notReadyAddresses: keptNotReady } : {}), ports };
    }),
  };
}
