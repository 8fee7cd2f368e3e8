/** Volumes that outlive pods, on the compiled binary: claimed, filled, kept, given back; and pods that write more than they may. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, Host, switchDown } from "./host.ts";

let host: Host;

beforeAll(async () => {
  host = await Host.withBusybox("storage", "172.30.0.24");
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await switchDown();
});

const show = async (what: string, path: string) => await host.kubectl("get", ...what.split(" "), "-o", `jsonpath={${path}}`);
const claim = (name: string, spec: string) => `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: ${name}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Mi}}, ${spec}}}`;
const pod = (name: string, command: string, volume: string, more = "") =>
  `{apiVersion: v1, kind: Pod, metadata: {name: ${name}}, spec: {terminationGracePeriodSeconds: 1, volumes: [{name: v, ${volume}}], containers: [{name: c, image: "busybox:1", command: [sh, -c, ${JSON.stringify(command)}], volumeMounts: [{name: v, mountPath: /v}], ${more}}]}}`;
const ready = async (name: string) => await host.kubectl("wait", `pod/${name}`, "--for=condition=Ready", "--timeout=300s");

test("a claim of the default class waits for its pod, is bound then, and keeps its data from pod to pod", async () => {
  await host.apply(claim("data", ""));
  expect([await show("pvc data", ".spec.storageClassName"), await show("pvc data", ".status.phase")]).toEqual(["local-path", "Pending"]);
  await host.apply(pod("writer", "echo kept > /v/file; sleep 1000", "persistentVolumeClaim: {claimName: data}"));
  await ready("writer");
  expect([await show("pvc data", ".status.phase"), await show("pvc data", ".status.capacity.storage"), await show("pv", ".items[0].spec.claimRef.name")]).toEqual(["Bound", "10Mi", "data"]);
  await host.kubectl("delete", "pod", "writer");
  await host.apply(pod("reader", "cat /v/file; sleep 1000", "persistentVolumeClaim: {claimName: data}"));
  await ready("reader");
  await eventually("the file is read", async () => (await host.kubectl("logs", "reader")) === "kept\n");
});

test("how full it is can be read, by claim", async () => {
  const series = await eventually("the kubelet has looked", async () => /kubelet_volume_stats_capacity_bytes\{namespace="default",persistentvolumeclaim="data"\} (\d+)/.exec(await host.kubectl("get", "--raw", `/api/v1/nodes/${host.name}/proxy/metrics`))?.[1]);
  expect(Number(series)).toBeGreaterThan(0);
  const { pods } = JSON.parse(await host.kubectl("get", "--raw", `/api/v1/nodes/${host.name}/proxy/stats/summary`));
  expect(pods.find(({ podRef }: { podRef: { name: string } }) => podRef.name === "reader").volume).toContainEqual(expect.objectContaining({ name: "v", pvcRef: { name: "data", namespace: "default" }, capacityBytes: expect.any(Number) }));
});

test("a claim in use stays until it is not; then its volume and what was in it go", async () => {
  const path = await show("pv", ".items[0].spec.local.path");
  await host.kubectl("delete", "pvc", "data", "--wait=false");
  expect(await host.kubectl("get", "pvc", "data", "--no-headers")).toContain("Terminating");
  expect(await host.sh(`cat ${path}/file`)).toBe("kept\n");
  await host.kubectl("delete", "pod", "reader");
  await eventually("the claim and its volume are gone", async () => (await host.kubectl("get", "pvc,pv", "-o", "name")) === "");
  await eventually("and its directory", async () => (await host.run(["ls", path])).code !== 0);
});

test("a volume made by hand is bound by what a claim asks for, and retained", async () => {
  await host.sh(`mkdir -p ${host.directory}/shelf`);
  await host.apply(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: shelf, labels: {kind: shelf}}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain, hostPath: {path: ${host.directory}/shelf}}}`);
  await host.apply(claim("box", `storageClassName: "", selector: {matchLabels: {kind: shelf}}`));
  await eventually("they are bound", async () => (await show("pvc box", ".spec.volumeName")) === "shelf" && (await show("pv shelf", ".status.phase")) === "Bound");
  await host.apply(pod("packer", "echo box > /v/file; sleep 1000", "persistentVolumeClaim: {claimName: box}"));
  await ready("packer");
  await host.kubectl("delete", "pod/packer", "pvc/box");
  await eventually("the volume is released", async () => (await show("pv shelf", ".status.phase")) === "Released");
  expect(await host.sh(`cat ${host.directory}/shelf/file`)).toBe("box\n");
  await host.kubectl("patch", "pv", "shelf", "--type=json", "-p", '[{"op":"remove","path":"/spec/claimRef"}]');
  await eventually("somebody may have it again", async () => (await show("pv shelf", ".status.phase")) === "Available");
});

test("who writes more than allowed to the node's disk is evicted and gives it back at once; memory is no disk", async () => {
  const limit = "resources: {limits: {ephemeral-storage: 1Mi}}";
  const writes = (where: string) => `head -c 5000000 /dev/zero > ${where}/big; sleep 1000`;
  await host.apply(pod("layer", writes("/"), "emptyDir: {}", limit));
  await host.apply(pod("volume", writes("/v"), "emptyDir: {sizeLimit: 1Mi}"));
  await host.apply(pod("memory", writes("/v"), "emptyDir: {medium: Memory}", limit));
  for (const [name, message] of [["layer", "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "], ["volume", `Usage of EmptyDir volume "v" exceeds the limit "1Mi". `]] as const) {
    await eventually(`${name} is evicted`, async () => (await show(`pod ${name}`, ".status.phase")) === "Failed");
    expect([await show(`pod ${name}`, ".status.reason"), await show(`pod ${name}`, ".status.message"), await show(`pod ${name}`, `.status.conditions[?(@.type=="DisruptionTarget")].status`)]).toEqual(["Evicted", message, ""]);
  }
  await eventually("only who stays has containers and logs", async () => {
    const containers = (await host.ok([host.binary, "crictl", "ps", "-a"])).trim().split("\n").slice(1).map((line) => line.split(/\s+/).at(-1));
    const logs = (await host.sh("ls /var/log/pods")).trim().split("\n").map((name) => name.split("_")[1]);
    return containers.join() === "memory" && logs.join() === "memory";
  });
  expect(await show("pod memory", ".status.phase")).toBe("Running");
  expect(await show("pod layer", ".status.containerStatuses[0].state.terminated.reason")).toBe("Error");
});
