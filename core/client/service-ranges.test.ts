import { expect, test } from "vitest";
import { staticInformer, stored } from "../../test/static-informer.ts";
import type { ServiceCIDR } from "../api/gen/networking.v1.ts";
import type { Informers } from "./informer-factory.ts";
import { serviceRanges } from "./service-ranges.ts";

test("ranges of services follow the objects, each family for itself; what was configured serves until there are any", () => {
  const range = (name: string, ...cidrs: string[]): ServiceCIDR => stored<ServiceCIDR>("networking.k8s.io/v1", "ServiceCIDR", name, { spec: { cidrs } });
  const objects = staticInformer<ServiceCIDR>();
  const ranges = serviceRanges({ of: () => objects } as unknown as Informers, ["10.43.0.0/16", "fd43::/112"]);
  const heard: string[] = [];
  const stop = ranges.onChange(() => heard.push(ranges.list().join(" ")));
  expect(ranges.list()).toEqual(["10.43.0.0/16", "fd43::/112"]);
  objects.put(range("kubernetes", "10.43.0.0/16", "fd43::/112"));
  objects.put(range("more", "10.44.0.0/24"));
  objects.put(range("wider", "10.43.0.0/15")); // nft takes no range inside another
  objects.remove(range("wider"));
  objects.remove(range("more"));
  stop();
  objects.put(range("more", "10.45.0.0/24"));
  expect(heard).toEqual(["10.43.0.0/16 10.44.0.0/24 fd43::/112", "10.42.0.0/15 10.44.0.0/24 fd43::/112", "10.43.0.0/16 10.44.0.0/24 fd43::/112", "10.43.0.0/16 fd43::/112"]);
  expect(ranges.of(6)).toEqual(["fd43::/112"]);
});
