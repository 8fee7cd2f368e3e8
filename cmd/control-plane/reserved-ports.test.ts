import { expect, test } from "vitest";
import { reservedPorts } from "./reserved-ports.ts";

test.each<[string | undefined, readonly number[]]>([
  [undefined, []], ["https://10.0.0.1:2379, https://10.0.0.2:2379,https://[fd00::3]:12379/", [2379, 12_379]], ["http://etcd,https://[fd00::3]", [2379]], ["unix:///run/etcd.sock", []],
])("of a datastore at %s no Service gets the ports", (datastoreEndpoint, expected) => {
  const reserved = reservedPorts({ httpsListenPort: 6443, kubeletPort: 10_250, datastoreEndpoint, disable: [] });
  expect(reserved.filter(({ why }) => why === "the datastore's").map(({ port }) => port)).toEqual(expected);
  expect(reserved.filter(({ protocol, why }) => protocol === "TCP" && why !== "the datastore's").map(({ port }) => port)).toEqual([6443, 10_250, 10_080, 10_443]);
});

test("without an ingress its ports are free", () => {
  expect(reservedPorts({ httpsListenPort: 6443, kubeletPort: 10_250, datastoreEndpoint: undefined, disable: ["ingress"] }).map(({ port }) => port)).toEqual([6443, 10_250, 4789]);
});
