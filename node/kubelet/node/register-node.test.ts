import { expect, test } from "vitest";
import { silentLog } from "../../../core/observe/log.ts";
import type { MachineInfo } from "../../os/machine.ts";
import { fakeApi } from "../../../test/fake-api.ts";
import { NODES } from "../../../core/client/resources.ts";
import { KUBELET_DEFAULTS, type KubeletSettings } from "../settings.ts";
import { registerNode } from "./register-node.ts";

const machine = { os: "linux", architecture: "amd64", bootId: "second" } as unknown as MachineInfo;
const { signal } = new AbortController();

async function registered({ labels = {}, found, bootID }: { readonly labels?: KubeletSettings["labels"]; readonly found: Record<string, string>; readonly bootID?: string }) {
  const { client } = fakeApi();
  let reboots = 0;
  await client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n", labels: found }, spec: {}, ...(bootID === undefined ? {} : { status: { nodeInfo: { bootID } as never } }) }, { signal });
  const settings = { ...KUBELET_DEFAULTS, nodeName: "n", hostname: "host", labels } as KubeletSettings;
  const node = await registerNode({ settings, client, machine, log: silentLog, onRebooted: () => void reboots++ }, signal);
  return { labels: node.metadata.labels, reboots };
}

test("a machine has been started anew when it says so and has said something else before", async () => {
  const reboots = async (bootID?: string) => (await registered({ found: {}, ...(bootID === undefined ? {} : { bootID }) })).reboots;
  expect([await reboots("first"), await reboots("second"), await reboots(""), await reboots()]).toEqual([1, 0, 0, 0]);
});

test("a node that is registered again keeps the labels that others have given or taken, but for those that tell where and what it is", async () => {
  const { labels } = await registered({ found: { shed: "2", "kubernetes.io/hostname": "old", "topology.kubernetes.io/zone": "a" }, labels: { shed: "1", rack: "7", "topology.kubernetes.io/zone": "b", "kubernetes.io/hostname": "given" } });
  expect(labels).toEqual({ shed: "2", "topology.kubernetes.io/zone": "b", "kubernetes.io/hostname": "given", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64" });
});

test("a machine that is new has none of the devices that its node's object tells of; one that has been here keeps them until their plugins say", async () => {
  const of = async (isNewMachine: boolean) => {
    const { client } = fakeApi();
    const has = { cpu: "4", "example.com/gpu": "2", "hugepages-2Mi": "0" };
    await client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n" }, spec: {}, ...{ status: { capacity: has, allocatable: has } } }, { signal });
    const { status } = await registerNode({ settings: { ...KUBELET_DEFAULTS, nodeName: "n", hostname: "host" } as KubeletSettings, client, machine, log: silentLog, onRebooted: () => undefined, isNewMachine }, signal);
    return [status?.capacity, status?.allocatable];
  };
  const none = { cpu: "4", "example.com/gpu": "0", "hugepages-2Mi": "0" };
  expect(await of(true)).toEqual([none, none]);
  expect(await of(false)).toEqual(Array(2).fill({ ...none, "example.com/gpu": "2" }));
});
