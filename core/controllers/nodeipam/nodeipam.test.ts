import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { Node } from "../../api/gen/core.v1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { EVENTS, NODES } from "../../client/resources.ts";
import { cidrsOverlap, formatCidr, parseCidr } from "../../net/cidr.ts";
import { FreeRanges } from "./free-ranges.ts";
import { nodeIpamController } from "./nodeipam.ts";

const node = (name: string): NewObject<Node> => ({ apiVersion: "v1", kind: "Node", metadata: { name }, spec: {} });

test("nodes get ranges of both families, none twice, none of the services'", () =>
  withControllers((deps) => [nodeIpamController({ ...deps, config: { clusterCidrs: ["10.42.0.0/22", "fd00:42::/62"], serviceCidrs: ["10.42.1.0/25"] } })], async (api, call) => {
    const nodes = api.client.resource(NODES);
    await nodes.create({ ...node("old"), spec: { podCIDR: "10.42.0.0/24", podCIDRs: ["10.42.0.0/24", "fd00:42::/64"] } }, call);
    for (const name of ["a", "b"]) await nodes.create(node(name), call);
    await eventually(() => api.all(NODES).map(({ spec }) => spec?.podCIDRs?.join()).sort(), (seen) => seen.join(" ") === "10.42.0.0/24,fd00:42::/64 10.42.2.0/24,fd00:42:0:1::/64 10.42.3.0/24,fd00:42:0:2::/64");
    await nodes.create(node("c"), call);
    await eventually(() => api.all(EVENTS), (all) => all.some(({ reason, message }) => reason === "CIDRNotAvailable" && message === "Node c status is now: CIDRNotAvailable"));
  }));

test("a range is found if there is one, and overlaps none in use", () => {
  const range = parseCidr("10.0.0.0/20")!;
  for (let seed = 1; seed < 200; seed++) {
    let state = seed;
    const pick = (n: number): number => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return (state >>> 10) % n; };
    const used = Array.from({ length: pick(18) }, () => parseCidr(pick(4) ? `10.0.${pick(16)}.0/24` : `10.0.${pick(4) * 4}.0/22`)!);
    const free = Array.from({ length: 16 }, (_, i) => parseCidr(`10.0.${i}.0/24`)!).filter((one) => !used.some((other) => cidrsOverlap(one, other)));
    const ranges = new FreeRanges(range, 24);
    const gone = Array.from({ length: pick(8) }, () => parseCidr(pick(4) ? `10.0.${pick(16)}.0/24` : `10.0.${pick(16)}.${pick(4) * 64}/26`)!);
    for (const one of [...gone, ...used, parseCidr("10.1.0.0/24")!]) ranges.take(one);
    for (const one of [...gone, parseCidr("10.1.0.0/24")!]) ranges.giveBack(one);
    const found = ranges.next();
    if (free.length === 0) expect(found).toBeUndefined();
    else expect(free.map(formatCidr)).toContain(formatCidr(found!));
  }
});

test("parts go round: what was given back is the last to be offered again", () => {
  const ranges = new FreeRanges(parseCidr("10.0.0.0/22")!, 24);
  const offered = (): string | undefined => {
    const part = ranges.next();
    if (part) ranges.take(part);
    return part && formatCidr(part);
  };
  expect([offered(), offered()]).toEqual(["10.0.0.0/24", "10.0.1.0/24"]);
  expect(ranges.passed).toBe(0);
  ranges.giveBack(parseCidr("10.0.0.0/24")!);
  expect([offered(), offered(), offered(), offered()]).toEqual(["10.0.2.0/24", "10.0.3.0/24", "10.0.0.0/24", undefined]);
  ranges.giveBack(parseCidr("10.0.3.0/24")!);
  expect([offered(), ranges.passed]).toEqual(["10.0.3.0/24", 2]); // after 10.0.0.0/24
});

test("what a node has is free again when it is gone", () =>
  withControllers((deps) => [nodeIpamController({ ...deps, config: { clusterCidrs: ["10.42.0.0/24"], serviceCidrs: [] } })], async (api, call) => {
    const nodes = api.client.resource(NODES);
    const rangesOf = (name: string) => () => api.all(NODES).find(({ metadata }) => metadata.name === name)?.spec?.podCIDRs?.join();
    const first = await nodes.create(node("first"), call);
    await eventually(rangesOf("first"), (seen) => seen === "10.42.0.0/24");
    await nodes.delete(first, {}, call);
    await nodes.create(node("second"), call);
    await eventually(rangesOf("second"), (seen) => seen === "10.42.0.0/24");
  }));
