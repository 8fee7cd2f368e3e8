import { expect, test } from "vitest";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { addedDevices } from "./start-devices.ts";

const pod = { metadata: { name: "p", uid: "u" }, spec: {} } as unknown as Pod;

test("what a container says of a variable goes before what its devices' plugins say; of these the first counts, as for paths", async () => {
  const answers = [
    { envs: { VISIBLE: "GPU-1", FIRST: "a" }, devices: [{ container_path: "/dev/x", host_path: "/dev/x0", permissions: "rw" }], annotations: { a: "1" }, cdi_devices: [{ name: "v/c=0" }, { name: "v/c=1" }] },
    { envs: { FIRST: "b", SECOND: "b" }, devices: [{ container_path: "/dev/x", host_path: "/dev/x1", permissions: "rw" }], annotations: { a: "2", b: "2" } },
  ];
  const devices = { startOptions: async () => answers };
  const claims = { devicesOf: () => [{ devices: [{ cdiIds: ["v/c=9", "v/c=1"] }] }] };
  const context = { devices, claims } as unknown as Parameters<typeof addedDevices>[0];
  const added = await addedDevices(context, pod, { container: "c", environment: new Map([["VISIBLE", "all"], ["OWN", "1"]]) }, new AbortController().signal);
  expect(Object.fromEntries(added.environment)).toEqual({ VISIBLE: "all", OWN: "1", FIRST: "a", SECOND: "b" });
  expect(added.devices).toEqual([{ container_path: "/dev/x", host_path: "/dev/x0", permissions: "rw" }]);
  expect(added.annotations).toEqual({ a: "1", b: "2" });
  expect(added.CDI_devices.map(({ name }) => name)).toEqual(["v/c=9", "v/c=1", "v/c=0"]); // those of claims first
});
