import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { ENDPOINT_SLICES, ENDPOINTS, EVENTS, SERVICES } from "../../client/resources.ts";
import { endpointSliceMirroringController } from "./endpointslicemirroring.ts";

test("of a subset no more is mirrored than the setting says, and the rest is told of", () =>
  withControllers((deps) => [endpointSliceMirroringController({ ...deps, perSubsetMax: 2 })], async (api, call) => {
    const metadata = { name: "db", namespace: "a" };
    await api.client.resource(SERVICES).create({ apiVersion: "v1", kind: "Service", metadata, spec: { ports: [{ port: 1 }] } }, call);
    await api.client.resource(ENDPOINTS).create({ apiVersion: "v1", kind: "Endpoints", metadata, subsets: [{ addresses: ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map((ip) => ({ ip })), ports: [{ port: 1 }] }] } as never, call);
    const slices = await eventually(() => api.all(ENDPOINT_SLICES), (all) => all.length > 0);
    expect(slices.flatMap(({ endpoints }) => endpoints!.flatMap(({ addresses }) => addresses))).toEqual(["10.0.0.1", "10.0.0.2"]);
    const [event] = await eventually(() => api.all(EVENTS), (all) => all.length > 0);
    expect(event!.message).toBe("A max of 2 addresses can be mirrored to EndpointSlices per Endpoints subset. 1 addresses were skipped");
  }));

test("an address that is stored with leading zeros, or as IPv4 in IPv6, is mirrored as what it is, and one that is none keeps no other from being mirrored", () =>
  withControllers((deps) => [endpointSliceMirroringController(deps)], async (api, call) => {
    const metadata = { name: "db", namespace: "a" };
    await api.client.resource(SERVICES).create({ apiVersion: "v1", kind: "Service", metadata, spec: { ports: [{ port: 1 }] } }, call);
    const addresses = ["010.0.0.1", "::ffff:10.0.0.2", "10.0.0.300", "fd00:0::3", "10.0.0.4"].map((ip) => ({ ip }));
    await api.client.resource(ENDPOINTS).create({ apiVersion: "v1", kind: "Endpoints", metadata, subsets: [{ addresses, ports: [{ port: 1 }] }] } as never, call);
    const slices = await eventually(() => api.all(ENDPOINT_SLICES), (all) => all.length > 1);
    const found = (type: string) => slices.filter(({ addressType }) => addressType === type).flatMap(({ endpoints }) => endpoints!.flatMap(({ addresses }) => addresses)).toSorted();
    expect([found("IPv4"), found("IPv6")]).toEqual([["10.0.0.1", "10.0.0.2", "10.0.0.4"], ["fd00::3"]]);
  }));

test("a slice that somebody has emptied does not stay beside the one that has the addresses", () =>
  withControllers((deps) => [endpointSliceMirroringController(deps)], async (api, call) => {
    const metadata = { name: "db", namespace: "a" };
    await api.client.resource(SERVICES).create({ apiVersion: "v1", kind: "Service", metadata, spec: { ports: [{ port: 1 }] } }, call);
    await api.client.resource(ENDPOINTS).create({ apiVersion: "v1", kind: "Endpoints", metadata, subsets: [{ addresses: [{ ip: "10.0.0.1" }], ports: [{ port: 1 }] }] } as never, call);
    const [slice] = await eventually(() => api.all(ENDPOINT_SLICES), (all) => all.length > 0);
    await api.client.resource(ENDPOINT_SLICES).create({ ...slice!, metadata: { ...slice!.metadata, name: "empty", resourceVersion: undefined }, endpoints: [] } as never, call);
    await eventually(() => api.all(ENDPOINT_SLICES), (all) => all.length === 1 && all[0]!.endpoints?.length === 1);
  }));
