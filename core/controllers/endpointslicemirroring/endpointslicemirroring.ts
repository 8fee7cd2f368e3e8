/**
 * Copies Endpoints that users write themselves, for Services without a selector, into EndpointSlices, which is what proxies read.
 *
 * API:    https://kubernetes.io/docs/concepts/services-networking/service/#endpointslice-mirroring
 * Source: kubernetes v1.36 pkg/controller/endpointslicemirroring
 */
import type { EndpointAddress, Endpoints, EndpointSubset } from "../../api/gen/core.v1.ts";
import type { Endpoint, EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { annotationsOf, controllerRef, isDeleting, labelsOf, namespaceOf, type TemplateMeta } from "../../api/meta/object-meta.ts";
import { ENDPOINT_SLICES, ENDPOINTS, SERVICES } from "../../client/resources.ts";
import { formatIp, type Ip, parseStoredIp } from "../../net/cidr.ts";
import { type Controller, itself, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { LEADER_ANNOTATION, SKIP_MIRROR_LABEL } from "../endpoints/endpoints.ts";
import { repackSubsets } from "../endpoints/plan.ts";
import { MANAGED_BY_LABEL, SERVICE_NAME_LABEL, serviceKey, SLICES_BY_SERVICE } from "../endpointslice/endpointslice.ts";
import { type Group, planSlices, TRIGGER_TIME } from "../endpointslice/plan.ts";
import { measured } from "../measured-controller.ts";
import { writeSlices } from "../endpointslice/write-slices.ts";
import { type MirrorMeter, mirrorMeter } from "./metrics.ts";

const MANAGER = "endpointslicemirroring-controller.k8s.io";

/** --mirroring-max-endpoints-per-subset */
export const PER_SUBSET_MAX = 1000;

type Deps = Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "metrics">;

export function endpointSliceMirroringController({ clock, metrics, ...deps }: Deps & { readonly perSubsetMax?: number | undefined }): Controller {
  const meter = metrics && mirrorMeter(metrics);
  const controller = mirrors(deps, meter);
  return meter ? measured(controller, clock, (seconds) => meter.ended(seconds)) : controller;
}

function mirrors({ client, informers, events, perSubsetMax = PER_SUBSET_MAX }: Pick<Deps, "client" | "informers" | "events"> & { readonly perSubsetMax?: number | undefined }, meter: MirrorMeter | undefined): Controller {
  const services = informers.of(SERVICES);
  const endpoints = informers.of(ENDPOINTS);
  const slices = informers.of(ENDPOINT_SLICES);
  const sliceClient = client.resource(ENDPOINT_SLICES);
  const recorder = events.from({ component: "endpoint-slice-mirroring-controller" });

  return {
    name: "endpoint_slice_mirroring",
    workers: 5,
    retry: { minMs: 1000, maxMs: 100_000 }, // endpointslicemirroring_controller.go defaultSyncBackOff, maxSyncBackOff
    watches: [itself(endpoints), itself(services), mapped(slices, ({ object, old }) => (old === undefined ? [object] : [old, object]).filter(isOurs).map(serviceKey))],

    async reconcile(key, { signal }) {
      const source = endpoints.get(key);
      const service = services.get(key);
      const existing = slices.by(SLICES_BY_SERVICE, key).filter((slice) => isOurs(slice) && !isDeleting(slice));
      const write = { client: sliceClient, slices, owner: `Endpoints ${key}`, signal };
      const mirrored = source !== undefined && service !== undefined && mayMirror(source) && Object.keys(service.spec.selector ?? {}).length === 0;
      if (!mirrored) {
        meter?.gone(key);
        await writeSlices({ create: [], update: [], remove: existing }, { ...write, mayCreate: false });
        return;
      }
      const { groups, invalid, skipped } = mirror(repackSubsets(source.subsets ?? []), perSubsetMax);
      if (invalid > 0) recorder.event(source, "Warning", "InvalidIPAddress", `Skipped ${invalid} invalid IP addresses when mirroring to EndpointSlices`);
      if (skipped > invalid) {
        recorder.event(source, "Warning", "TooManyAddressesToMirror", `A max of ${perSubsetMax} addresses can be mirrored to EndpointSlices per Endpoints subset. ${skipped} addresses were skipped`);
      }
      meter?.skipped(skipped);
      const families = (["IPv4", "IPv6"] as const).map((addressType) => ({ addressType, existing: existing.filter((slice) => slice.addressType === addressType), groups: groups[addressType] }));
      meter?.synced(key, families);
      for (const { addressType, existing, groups } of families) {
        const plan = planSlices(existing, {
          addressType, groups, metadata: metadataFor(source), perSliceMax: perSubsetMax, placeholder: false, triggerTime: undefined,
        });
        meter?.changed(plan);
        await writeSlices(plan, { ...write, mayCreate: !isDeleting(source) });
      }
    },
  };
}

function isOurs(slice: Readonly<EndpointSlice>): boolean { return labelsOf(slice)[MANAGED_BY_LABEL] === MANAGER; }

function mayMirror(endpoints: Readonly<Endpoints>): boolean {
  return labelsOf(endpoints)[SKIP_MIRROR_LABEL] !== "true" && annotationsOf(endpoints)[LEADER_ANNOTATION] === undefined;
}

function metadataFor(endpoints: Readonly<Endpoints>): TemplateMeta {
  const { [TRIGGER_TIME]: _t, "kubectl.kubernetes.io/last-applied-configuration": _l, ...annotations } = annotationsOf(endpoints);
  return {
    generateName: `${endpoints.metadata.name}-`, namespace: namespaceOf(endpoints), ownerReferences: [controllerRef(endpoints)], annotations,
    labels: { ...labelsOf(endpoints), [SERVICE_NAME_LABEL]: endpoints.metadata.name, [MANAGED_BY_LABEL]: MANAGER },
  };
}

interface Mirrored { readonly groups: Record<"IPv4" | "IPv6", Group[]>; readonly invalid: number; readonly skipped: number }

function mirror(subsets: readonly EndpointSubset[], perSubsetMax: number): Mirrored {
  const groups: Mirrored["groups"] = { IPv4: [], IPv6: [] };
  let [invalid, skipped] = [0, 0];
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of subsets) {
    const found: Record<"IPv4" | "IPv6", Endpoint[]> = { IPv4: [], IPv6: [] };
    let added = 0;
    for (const [address, ready] of [...addresses.map((one) => [one, true] as const), ...notReadyAddresses.map((one) => [one, false] as const)]) {
      if (added >= perSubsetMax) break;
      const ip = parseStoredIp(address.ip);
      if (!ip) { invalid++; continue; }
      found[`IPv${ip.family}`].push(endpointOf(address, ip, ready));
      added++;
    }
    skipped += addresses.length + notReadyAddresses.length - added;
    const slicePorts = ports.map(({ name = "", port, protocol = "TCP", appProtocol }) => ({ name, port, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) }));
    for (const family of ["IPv4", "IPv6"] as const) if (found[family].length > 0) groups[family].push({ ports: slicePorts, endpoints: found[family] });
  }
  return { groups, invalid, skipped };
}

function endpointOf({ hostname, nodeName, targetRef }: EndpointAddress, ip: Ip, ready: boolean): Endpoint {
  return {
    addresses: [formatIp(ip)], conditions: { ready }, ...(targetRef === undefined ? {} : { targetRef }), ...(nodeName === undefined ? {} : { nodeName }), ...(hostname ? { hostname } : {}),
  };
}
