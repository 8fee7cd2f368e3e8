/** Filters on what a node has left: resources and host ports. */
import { HostPorts, hostPortsOf } from "../../api/meta/host-ports.ts";
import { asksForLess, isPlacedPodGone, nodeChanged } from "../changes.ts";
import { backedResources, CLASS_PREFIX, isExtendedResource } from "../devices/extended-resources.ts";
import type { Filter } from "../plugin.ts";
import { amounts, podRequests } from "../pod-requests.ts";
import { resolvable } from "../rejection.ts";

/** Always reported first, as upstream does; the rest in alphabetical order. */
const FIRST = ["cpu", "memory", "ephemeral-storage"];

interface FitArgs {
  /** Extended resources that somebody else counts: by name, or by what stands before the "/". */
  readonly ignoredResources: readonly string[];
  readonly ignoredResourceGroups: readonly string[];
}

export function nodeResourcesFit({ ignoredResources, ignoredResourceGroups }: FitArgs = { ignoredResources: [], ignoredResourceGroups: [] }): Filter {
  const isIgnored = (name: string): boolean => name.includes("/") && (ignoredResources.includes(name) || ignoredResourceGroups.includes(name.slice(0, name.indexOf("/"))));
  return {
    name: "NodeResourcesFit",
    ofNode: true,
    prepare({ requests }, { devices }) {
      const names = [...FIRST, ...Object.keys(requests).filter((name) => !FIRST.includes(name) && !isIgnored(name)).sort()].filter((name) => (requests[name] ?? 0) > 0);
      const backed = new Set(backedResources(requests, (name) => devices.classBehind(name))); // where the node has none, a claim for devices is made
      return {
        reject({ allocatable, requested, pods }) {
          const podsMax = allocatable["pods"] ?? 0;
          let reasons: string[] | undefined;
          let never = false; // more than the whole node has
          if (pods.size + 1 > podsMax) reasons = ["Too many pods"];
          for (const name of names) {
            const has = allocatable[name] ?? 0;
            if (requests[name]! <= has - (requested[name] ?? 0) || (has === 0 && backed.has(name))) continue;
            (reasons ??= []).push(`Insufficient ${name}`);
            never ||= requests[name]! > has;
          }
          return reasons && { reasons, resolvable: !never };
        },
      };
    },
    mayHelp(pod, change, { devices }) {
      switch (change.of) {
        case "pod": return change.object.metadata.uid === pod.metadata.uid && change.old !== undefined && asksForLess(podRequests(change.old), podRequests(change.object));
        case "device class": {
          if (change.deleted) return false;
          const { metadata: { name }, spec: { extendedResourceName } } = change.object;
          const offers = change.old ? [] : [CLASS_PREFIX + name];
          if (extendedResourceName !== undefined && extendedResourceName !== change.old?.spec.extendedResourceName) offers.push(extendedResourceName);
          const requests = podRequests(pod);
          return offers.some((resource) => requests[resource] !== undefined);
        }
        case "placed pod":
          if (change.deleted) return true;
          return change.old !== undefined && asksForLess(podRequests(change.old), podRequests(change.object), podRequests(pod)); // scaled down in place
        case "node": {
          if (!nodeChanged(change, ({ status }) => status?.allocatable)) return false;
          const wanted = Object.entries(podRequests(pod)).filter(([, amount]) => amount > 0);
          const has = amounts(change.object.status?.allocatable);
          const backed = (name: string): boolean => (has[name] ?? 0) === 0 && isExtendedResource(name) && devices.classBehind(name) !== undefined;
          if ((has["pods"] ?? 0) < 1 || !wanted.every(([name, amount]) => amount <= (has[name] ?? 0) || backed(name))) return false;
          if (!change.old) return true;
          const had = amounts(change.old.status?.allocatable);
          return (has["pods"] ?? 0) > (had["pods"] ?? 0) || wanted.some(([name]) => (has[name] ?? 0) > (had[name] ?? 0) || backed(name));
        }
        default: return false;
      }
    },
  };
}

export const nodePorts: Filter = {
  name: "NodePorts",
  ofNode: true,
  prepare({ pod }) {
    const wanted = new HostPorts(hostPortsOf(pod.spec));
    if (wanted.isEmpty) return undefined;
    return { reject: ({ hostPorts }) => (wanted.conflictWith(hostPorts.keys()) ? resolvable("node(s) didn't have free ports for the requested pod ports") : undefined) };
  },
  mayHelp: (pod, change) => (isPlacedPodGone(change) && change.of === "placed pod" && new HostPorts(hostPortsOf(pod.spec)).conflictWith(hostPortsOf(change.object.spec))) || (change.of === "node" && !change.old && !change.deleted),
};
