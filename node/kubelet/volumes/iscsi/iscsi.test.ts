import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Pod } from "../../../../core/api/gen/core.v1.ts";
import { silentLog } from "../../../../core/observe/log.ts";
import type { Client } from "../../../../core/client/client.ts";
import { eventually } from "../../../../test/fake-api.ts";
import { systemClock } from "../../../../core/lifecycle/clock.ts";
import { ExecError, type ExecResult } from "../../../os/exec.ts";
import type { Mounts } from "../../../os/mount.ts";
import { VolumePending } from "../mount-failure.ts";
import { iscsiDirectory, iscsiDisk, noteOf, targetOfDirectory, targetOfNote } from "./iscsi-disk.ts";
import { iscsiSessions } from "./iscsi-sessions.ts";
import { type IscsiVolumes, iscsiVolumes } from "./iscsi-volumes.ts";
import { interfaceSettings, iscsiadm } from "./iscsiadm.ts";
import { setUpIscsi } from "./set-up-iscsi.ts";

let root = "";
beforeEach(() => { root = mkdtempSync(join(tmpdir(), "iscsi-")); });
afterEach(() => rmSync(root, { recursive: true }));

const { signal } = new AbortController();
const IQN = "iqn.2003-01.io.k8s:shed";
const source = { targetPortal: "10.0.0.1", iqn: IQN, lun: 1 };
const use = { name: "v", options: [], readOnly: false, block: false, secret: {} };

function put(path: string, text = ""): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** A kernel's /sys and an iscsiadm that knows portals, by their SCSI host. LUNs become disks when somebody looks for them, as they do at a session that scans by hand. */
function machine(portals: Record<string, number>, refuse: (args: string) => Partial<ExecResult> | Promise<Partial<ExecResult>> | undefined = () => undefined) {
  const [sys, dev, dataDir] = ["sys", "dev", "data"].map((name) => join(root, name)) as [string, string, string];
  const did: string[] = [];
  const told: string[] = [];
  const loggedIn = new Map<string, number>();
  const session = (host: number) => join(sys, `class/iscsi_host/host${host}/device/session${host}`);
  const iqnOf = (args: readonly string[]) => args[args.indexOf("-T") + 1]!;
  const exec = async (program: string, args: readonly string[]): Promise<ExecResult> => {
    const line = args.join(" ");
    did.push([program, ...args].join(" "));
    const portal = args[args.indexOf("-p") + 1]!;
    const answer = { exitCode: program === "blkid" ? 2 : 0, stdout: "", stderr: "", ...(await refuse(line)) };
    if (program === "mount" && answer.exitCode === 0) table.push({ source: args.at(-2)!, target: args.at(-1)! });
    if (program === "umount" && answer.exitCode === 0) table.splice(table.findIndex(({ target }) => target === args[0]), 1);
    if (program !== "iscsiadm" || answer.exitCode !== 0) return answer;
    if (args.includes("show")) return { ...answer, stdout: "# BEGIN RECORD 2.1.8\niface.iscsi_ifacename = default\niface.net_ifacename = <empty>\niface.transport_name = tcp\niface.mtu = 0\n# END RECORD\n" };
    if (args.includes("--login")) {
      const host = portals[portal];
      if (host === undefined) return { ...answer, exitCode: 8, stderr: "iscsiadm: connection timed out" };
      loggedIn.set(portal, host);
      const [address, port] = portal.split(":") as [string, string];
      const connection = join(session(host), `connection${host}:0/iscsi_connection/connection${host}:0`);
      for (const prefix of ["", "persistent_"]) { put(join(connection, `${prefix}address`), `${address}\n`); put(join(connection, `${prefix}port`), `${port}\n`); }
      put(join(session(host), `iscsi_session/session${host}/targetname`), `${iqnOf(args)}\n`);
    } else if (args.includes("--logout")) {
      if (!loggedIn.has(portal)) return { ...answer, exitCode: 21, stderr: "iscsiadm: No matching sessions found" };
      rmSync(join(sys, `class/iscsi_host/host${loggedIn.get(portal)}`), { recursive: true });
      loggedIn.delete(portal);
    }
    return answer;
  };
  const table: { source: string; target: string }[] = [];
  const mounts = {
    list: () => table,
    isMountPoint: (path: string) => table.some(({ target }) => target === path),
    bind: (from: string, target: string) => void table.push({ source: table.find((one) => one.target === from)!.source, target }),
  } as unknown as Mounts;
  const real = iscsiSessions({ sys, dev });
  const sessions = {
    ...real,
    async scan(host: number, lun: number) {
      const disk = `sd${String.fromCharCode(96 + host * 8 + lun)}`;
      put(join(session(host), `target${host}:0:0/${host}:0:0:${lun}/block/${disk}/size`));
      put(join(dev, disk));
    },
    async remove(disk: string) { did.push(`remove ${disk}`); rmSync(join(dev, disk)); },
  };
  const clock = { ...systemClock, uptimeMs: () => 1000 * did.length, sleep: async () => void did.push("sleep") }; // time goes by as things are done
  const volumesAttached = { names: [1, 2].map((lun) => ({ name: `kubernetes.io/iscsi/10.0.0.1:3260:${IQN}:${lun}`, devicePath: "" })) };
  const client = { resource: () => ({ get: async () => ({ status: { volumesAttached: volumesAttached.names } }) }) } as unknown as Client;
  const start = () => iscsiVolumes({ dataDir, nodeName: "n", client, onInUse: () => void told.push("in use"), mounts, exec, clock, log: silentLog, life: signal, sessions });
  return { sys, dev, dataDir, did, told, volumesAttached, table, loggedIn, exec, sessions, start, take: () => did.splice(0).map((line) => line.replaceAll(IQN, "IQN")) };
}

test.each([
  { targetPortal: "10.0.0.1/../../../../../../etc" }, { portals: ["a\nb"] }, { iqn: "iqn.2003-01.io.k8s:a/../../../../../../../../etc/x" }, { iscsiInterface: "x/../../../../../manifests" }, { initiatorName: "iqn.2003-01.io.k8s:a\nb" }, { fsType: "../../tmp/mkfs" }, { targetPortal: "" },
])("what would lead out of the directory of iSCSI volumes, or into another line of a record, is refused: %j", (more) => {
  expect(() => iscsiDisk({ ...source, ...more }, use)).toThrow("iSCSI volume v is refused");
});

test("a LUN is logged in to, mounted once, and logged out of with its last pod", async () => {
  const { dataDir, table, take, start, loggedIn } = machine({ "10.0.0.1:3260": 1 });
  const shared = join(dataDir, `plugins/kubernetes.io/iscsi/iface-default/10.0.0.1:3260-${IQN}-lun-1`);
  const iscsi = start();
  const [a, b] = ["a", "b"].map((pod) => join(dataDir, "pods", pod, "volumes/kubernetes.io~iscsi/v"));
  await iscsi.show(iscsiDisk(source, use), a!, signal);
  expect(take()).toEqual([
    "iscsiadm -m iface -I default -o show",
    "iscsiadm -m discoverydb -t sendtargets -p 10.0.0.1:3260 -I default -o new",
    "iscsiadm -m discoverydb -t sendtargets -p 10.0.0.1:3260 -I default --discover",
    "iscsiadm -m node -p 10.0.0.1:3260 -T IQN -I default -o update -n node.session.scan -v manual",
    "iscsiadm -m node -p 10.0.0.1:3260 -T IQN -I default --login",
    "iscsiadm -m node -p 10.0.0.1:3260 -T IQN -o update -n node.startup -v manual",
    "blkid -p -s TYPE -s PTTYPE -o export /dev/sdi", "mkfs.ext4 -F -m0 /dev/sdi", `mount -i -t ext4 -- /dev/sdi ${shared.replace(IQN, "IQN")}`,
  ]); // blkid finds nothing: blank
  expect(JSON.parse(readFileSync(join(shared, "iscsi.json"), "utf8"))).toEqual({ VolName: "v", Portals: ["10.0.0.1:3260"], Iqn: IQN, Lun: "1", InitIface: "default", Iface: "default", InitiatorName: "" });
  await iscsi.show(iscsiDisk(source, use), b!, signal);
  expect([take(), table.map(({ target }) => target)]).toEqual([[], [shared, a, b]]);
  table.splice(1, 1);
  await iscsi.sweep(signal);
  expect([take(), table.map(({ target }) => target)]).toEqual([[], [shared, b]]);
  table.pop();
  await start().sweep(signal); // by another kubelet
  expect([take(), table, existsSync(dirname(shared)), loggedIn.size]).toEqual([[
    `umount ${shared.replace(IQN, "IQN")}`, "remove sdi", "iscsiadm -m node -p 10.0.0.1:3260 -T IQN -I default --logout", "iscsiadm -m node -p 10.0.0.1:3260 -T IQN -I default -o delete",
  ], [], false, 0]);
});

test("a disk that another node may be writing to is waited for; it is in use from before to after", async () => {
  const { dataDir, table, told, volumesAttached, take, start } = machine({ "10.0.0.1:3260": 1 });
  const iscsi = start();
  const names = volumesAttached.names.splice(0);
  const show = () => iscsi.show(iscsiDisk(source, use), join(dataDir, "pods/a/v"), signal);
  await expect(show()).rejects.toThrow(VolumePending);
  expect([take(), await iscsi.inUse(), told]).toEqual([[], [names[0]!.name], ["in use"]]);
  volumesAttached.names.push(...names);
  await show();
  expect(await start().inUse()).toEqual([names[0]!.name]); // by another kubelet
  table.pop();
  await iscsi.sweep(signal);
  expect([await iscsi.inUse(), told]).toEqual([[], ["in use", "in use"]]);
});

test("who logs out of a target is the last one of all its LUNs", async () => {
  const { dataDir, table, take, start } = machine({ "10.0.0.1:3260": 1 });
  const iscsi = start();
  for (const lun of [1, 2]) await iscsi.show(iscsiDisk({ ...source, lun }, { ...use, name: `v${lun}` }), join(dataDir, `pods/p${lun}/v`), signal);
  expect(take().filter((line) => line.includes("--login"))).toHaveLength(1);
  table.splice(table.findIndex(({ target }) => target.endsWith("p1/v")), 1);
  await iscsi.sweep(signal);
  expect(take().slice(1)).toEqual(["remove sdi"]); // unmounted first
  table.splice(table.findIndex(({ target }) => target.endsWith("p2/v")), 1);
  await iscsi.sweep(signal);
  expect(take()).toContain("iscsiadm -m node -p 10.0.0.1:3260 -T IQN -I default --logout");
});

test("a device stays while its pod has volumes; a name that is another disk's by now is not believed", async () => {
  const { dataDir, sys, loggedIn, take, start } = machine({ "10.0.0.1:3260": 1 });
  const disk = iscsiDisk(source, { ...use, block: true });
  for (const name of ["volumes", "containers"]) mkdirSync(join(dataDir, "pods/a", name), { recursive: true });
  expect(await start().map(disk, "a", signal)).toBe("/dev/sdi");
  take();
  expect([await start().map(disk, "a", signal), take()]).toEqual(["/dev/sdi", []]);
  rmSync(join(sys, "class/iscsi_host"), { recursive: true }); // as after a restart of the machine
  loggedIn.clear();
  expect([await start().map(disk, "a", signal), take().filter((line) => line.includes("--login"))]).toEqual(["/dev/sdi", ["iscsiadm -m node -p 10.0.0.1:3260 -T IQN -I default --login"]]);
  await start().sweep(signal);
  expect(loggedIn.size).toBe(1);
  rmSync(join(dataDir, "pods/a/volumes"), { recursive: true }); // it has ended; what it said at its end stays
  await start().sweep(signal);
  expect([loggedIn.size, readdirSync(join(dataDir, "plugins/kubernetes.io/iscsi/volumeDevices"))]).toEqual([0, []]);
});

test("several portals are paths of one device; one that does not answer is done without", async () => {
  const { dev, sys, dataDir, loggedIn, table, take, start } = machine({ "10.0.0.1:3260": 1, "10.0.0.2:3260": 2 });
  for (const disk of ["sdi", "sdq"]) put(join(sys, `block/dm-3/slaves/${disk}/size`));
  put(join(dev, "dm-3"));
  const iscsi = start();
  await iscsi.show(iscsiDisk({ ...source, portals: ["10.0.0.2", "10.0.0.1", "10.0.0.3:3261"] }, use), join(dataDir, "pods/a/v"), signal);
  expect([[...loggedIn.keys()], take().filter((line) => line.includes("10.0.0.3") && line.includes("--login")).length, table[0]?.source]).toEqual([["10.0.0.1:3260", "10.0.0.2:3260"], 2, "/dev/dm-3"]);
  table.pop();
  await iscsi.sweep(signal);
  expect([take().filter((line) => !/^(iscsiadm|umount)/.test(line)), loggedIn.size]).toEqual([["multipath -f /dev/dm-3", "remove sdi", "remove sdq"], 0]);
});

test("passwords and an initiator's name are told before the login; the record of the interface goes at the end", async () => {
  const { dataDir, table, take, start } = machine({ "10.0.0.1:3260": 1 });
  const secret = { "discovery.sendtargets.auth.username": "d", "discovery.sendtargets.auth.password": "p", "node.session.auth.username": "n", "node.session.auth.password": "q", "node.session.auth.username_in": "" };
  const iscsi = start();
  await iscsi.show(iscsiDisk({ ...source, chapAuthDiscovery: true, chapAuthSession: true, initiatorName: "iqn.mine", iscsiInterface: "eth" }, { ...use, secret }), join(dataDir, "pods/a/v"), signal);
  const session = "-m node -p 10.0.0.1:3260 -T IQN -I 10.0.0.1:3260:v", discovery = "-m discoverydb -t sendtargets -p 10.0.0.1:3260 -I 10.0.0.1:3260:v";
  expect(take().filter((line) => line.startsWith("iscsiadm")).map((line) => line.slice("iscsiadm ".length))).toEqual([
    "-m iface -I eth -o show", "-m iface -I 10.0.0.1:3260:v -o new",
    ...[["initiatorname", "iqn.mine"], ["mtu", "0"], ["transport_name", "tcp"]].map(([key, value]) => `-m iface -I 10.0.0.1:3260:v -o update -n iface.${key} -v ${value}`),
    `${discovery} -o new`, ...[["authmethod", "CHAP"], ["username", "d"], ["password", "p"]].map(([key, value]) => `${discovery} -o update -n discovery.sendtargets.auth.${key} -v ${value}`), `${discovery} --discover`,
    `${session} -o update -n node.session.scan -v manual`, ...[["authmethod", "CHAP"], ["username", "n"], ["password", "q"]].map(([key, value]) => `${session} -o update -n node.session.auth.${key} -v ${value}`), `${session} --login`,
    "-m node -p 10.0.0.1:3260 -T IQN -o update -n node.startup -v manual",
  ]);
  table.pop();
  await iscsi.sweep(signal);
  expect(take().slice(-3)).toEqual([`iscsiadm ${session} --logout`, `iscsiadm ${session} -o delete`, "iscsiadm -m iface -I 10.0.0.1:3260:v -o delete"]);
});

test("what cannot be logged out of is tried again until it is done", async () => {
  let failures = 3;
  const { dataDir, table, did, loggedIn, start } = machine({ "10.0.0.1:3260": 1 }, (line) => (line.includes("--logout") && failures-- > 0 ? { exitCode: 9, stderr: "internal error" } : undefined));
  const iscsi = start();
  await iscsi.show(iscsiDisk(source, use), join(dataDir, "pods/a/v"), signal);
  table.pop();
  await iscsi.sweep(signal);
  await eventually(() => loggedIn.size, (count) => count === 0);
  expect([loggedIn.size, did.filter((line) => line.includes("--logout")).length]).toEqual([0, 4]);
});

test("a table of mounts that cannot be read for once, as with too many files open, ends no process, and what is left is tried again", async () => {
  let refused = false;
  const { dataDir, table, loggedIn, start } = machine({ "10.0.0.1:3260": 1 }, (line) => {
    if (!line.includes("--logout") || refused) return undefined;
    refused = true;
    Object.defineProperty(table, "findLast", { configurable: true, value() { Reflect.deleteProperty(table, "findLast"); throw new Error("EMFILE: too many open files"); } });
    return { exitCode: 9 };
  });
  const iscsi = start();
  await iscsi.show(iscsiDisk(source, use), join(dataDir, "pods/a/v"), signal);
  table.pop();
  await iscsi.sweep(signal);
  await eventually(() => loggedIn.size, (count) => count === 0);
});

test("who ends waits for no other target: neither for one that is being logged in to nor for one that does not let go", async () => {
  const held = { "--login": Promise.withResolvers<object>(), "--logout": Promise.withResolvers<object>() };
  let holds: keyof typeof held | undefined = "--login";
  const { dataDir, table, did, loggedIn, start } = machine({ "10.0.0.1:3260": 1 }, (line) => (holds && line.includes(holds) ? held[holds].promise : undefined));
  const iscsi = start();
  const asked = (what: string): Promise<number> => eventually(() => did.filter((line) => line.includes(what)).length, (count) => count > 0);
  const shown = iscsi.show(iscsiDisk(source, use), join(dataDir, "pods/a/v"), signal);
  await asked("--login");
  await iscsi.sweep(signal);
  holds = undefined;
  held["--login"].resolve({});
  await shown;
  table.pop();
  holds = "--logout";
  const own = iscsi.sweep(signal);
  await asked("--logout");
  await iscsi.sweep(signal);
  held["--logout"].resolve({ exitCode: 9 });
  await own;
  await iscsi.sweep(signal); // it is tried again beside that
  holds = undefined;
  await eventually(() => loggedIn.size, (count) => count === 0);
});

test("a target that does not take what is still to be written is logged out of when it has, and keeps nobody waiting", async () => {
  const { promise, resolve } = Promise.withResolvers<object>();
  const { dataDir, table, did, loggedIn, start } = machine({ "10.0.0.1:3260": 1 }, (line) => (line.startsWith("/") && line.includes("plugins/kubernetes.io/iscsi") ? promise : undefined));
  const iscsi = start(), gone = new AbortController();
  await iscsi.show(iscsiDisk(source, use), join(dataDir, "pods/a/v"), signal);
  table.pop();
  const own = iscsi.sweep(gone.signal);
  await eventually(() => did.at(-1), (line) => line?.startsWith("umount") === true);
  gone.abort(); // its pod's end is to be told, say
  await own;
  await iscsi.sweep(signal);
  expect([loggedIn.size, did.filter((line) => line.startsWith("umount")).length]).toEqual([1, 1]);
  resolve({});
  await eventually(() => loggedIn.size, (count) => count === 0);
});

test("a target that does not take what is still to be written keeps no other, not of the same pod either", async () => {
  const { promise, resolve } = Promise.withResolvers<object>();
  const other = { targetPortal: "10.0.0.2", iqn: "iqn.2003-01.io.k8s:barn", lun: 1 };
  let first: string | undefined; // whichever is asked first
  const { dataDir, table, loggedIn, volumesAttached, start } = machine({ "10.0.0.1:3260": 1, "10.0.0.2:3260": 2 }, (line) => (line.startsWith("/") && line.includes("plugins/kubernetes.io/iscsi") && (first ??= line) === line ? promise : undefined));
  volumesAttached.names.push({ name: `kubernetes.io/iscsi/10.0.0.2:3260:${other.iqn}:1`, devicePath: "" });
  const iscsi = start(), gone = new AbortController();
  for (const one of [source, other]) await iscsi.show(iscsiDisk(one, use), join(dataDir, `pods/a/${one.lun}${one.targetPortal}`), signal);
  table.splice(0, table.length, ...table.filter(({ target }) => !target.includes("/pods/")));
  const own = iscsi.sweep(gone.signal);
  await eventually(() => loggedIn.size, (count) => count === 1);
  gone.abort();
  await own;
  resolve({});
  await eventually(() => loggedIn.size, (count) => count === 0);
});

test.each<[string, Record<string, number>, (line: string) => Partial<ExecResult> | undefined, string]>([
  ["a portal that does not answer", {}, () => undefined, 'MountVolume.WaitForAttach failed for volume "v" : failed to get any path for iscsi disk, last err seen:\niscsi: failed to attach disk: Error: iscsiadm: connection timed out (exit status 8)'],
  ["a target that is not found", { "10.0.0.1:3260": 1 }, (line) => (line.includes("--discover") ? { exitCode: 4, stderr: "cannot connect" } : undefined), "iscsi: failed to sendtargets to portal 10.0.0.1:3260 output: cannot connect, err exit status 4"],
  ["an interface that nobody has made", { "10.0.0.1:3260": 1 }, (line) => (line.includes("show") ? { exitCode: 6, stderr: "no such iface" } : undefined), "iscsi: could not read iface default error: no such iface"],
])("%s is told", async (_, portals, refuse, message) => {
  const { dataDir, start, table, loggedIn } = machine(portals, refuse);
  await expect(start().show(iscsiDisk(source, use), join(dataDir, "pods/a/v"), signal)).rejects.toThrow(message);
  await start().sweep(signal);
  expect([table, loggedIn.size, readdirSync(join(dataDir, "plugins/kubernetes.io/iscsi"))]).toEqual([[], 0, []]);
});

test("a node without open-iscsi says so; a password is in no message", async () => {
  const without = iscsiadm(async () => { throw new ExecError("not-found", "iscsiadm: no such program"); });
  await expect(without.prepare(iscsiDisk(source, use), signal)).rejects.toThrow('exec: "iscsiadm": executable file not found in $PATH: volumes of iSCSI need open-iscsi on this node');
  await without.logOut(iscsiDisk(source, use), signal); // nobody has logged in
  const slow = iscsiadm(async (_, args) => { throw new ExecError("timeout", `iscsiadm ${args.join(" ")}: did not end in time`); });
  await expect(slow.logIn(iscsiDisk(source, use), "10.0.0.1:3260", signal)).rejects.toThrow(/^iscsiadm -m discoverydb: timeout$/);
});

test.each([["10.0.0.1", "10.0.0.1:3260"], ["10.0.0.1:860", "10.0.0.1:860"], ["[fd00::1]", "[fd00::1]:3260"], ["[fd00::1]:860", "[fd00::1]:860"], ["my-box", "my-box:3260"]])("the portal %s is %s", (targetPortal, portal) => {
  const disk = iscsiDisk({ ...source, targetPortal }, use);
  const [iface, name] = iscsiDirectory("/d", disk).split("/").slice(-2) as [string, string];
  expect([disk.portals, targetOfDirectory(iface, name), targetOfNote(noteOf(disk))]).toEqual([[portal], ...Array(2).fill({ portals: [portal], iqn: IQN, lun: 1, iface: "default", hasOwnIface: false })]);
});

test("sessions are the kernel's word: portals by host, disks by LUN; what is gone is left out", async () => {
  const { sys, dev } = machine({});
  const session = join(sys, "class/iscsi_host/host7/device/session2");
  put(join(session, "iscsi_session/session2/targetname"), `${IQN}\n`);
  for (const [name, value] of [["address", "fd00::1"], ["port", "3260"], ["persistent_address", "10.0.0.9"]] as const) put(join(session, "connection2:0/iscsi_connection/connection2:0", name), `${value}\n`); // no persistent_port: it ends just now
  put(join(session, "target7:0:0/7:0:0:3/block/sdx/size"));
  put(join(sys, "class/iscsi_host/host8/device/session3/iscsi_session/session3/targetname"), "iqn.other\n");
  const sessions = iscsiSessions({ sys, dev });
  expect([...(await sessions.hosts(IQN))]).toEqual([["[fd00::1]:3260", 7]]);
  expect(await sessions.disks(IQN, 3)).toEqual([]); // no device of it yet
  put(join(dev, "sdx"));
  expect([await sessions.disks(IQN, 3), await sessions.disks(IQN, 3, 8), await sessions.disks(IQN, 4), await iscsiSessions({ sys: join(sys, "none") }).disks(IQN, 3)]).toEqual([["sdx"], [], [], []]);
  put(join(sys, "block/sdx/device/delete"));
  await sessions.remove("sdx");
  await sessions.remove("sdy");
  expect(readFileSync(join(sys, "block/sdx/device/delete"), "utf8")).toBe("1");
});

test("what iscsiadm shows of an interface", () => {
  expect([...interfaceSettings("# BEGIN\niface.iscsi_ifacename = default\niface.mtu = 0\niface.hwaddress = <empty>\n")]).toEqual([["iface.mtu", "0"]]);
});

test("a disk that cannot be given to its pod's group is not the pod's: it is shown and given anew", async () => {
  const dataDir = join(root, "data"), mounted = new Set<string>();
  let isThere = false;
  const iscsi = { show: async (_: unknown, directory: string) => { mounted.add(directory); if (isThere) mkdirSync(directory, { recursive: true }); } } as unknown as IscsiVolumes;
  const mounts = { isMountPoint: (path: string) => mounted.has(path), unmount: (path: string) => void mounted.delete(path) };
  const pod = { metadata: { uid: "u", name: "p", namespace: "n" }, spec: { containers: [], securityContext: { fsGroup: process.getgid!() } } } as unknown as Pod;
  const setUp = () => setUpIscsi({ dataDir, client: {} as Client, mounts, iscsi }, pod, source, use, signal);
  await expect(setUp()).rejects.toThrow("ENOENT");
  expect(mounted.size).toBe(0);
  isThere = true;
  const { hostPath } = await setUp();
  expect([mounted.has(hostPath!), (statSync(hostPath!).mode & 0o2070).toString(8)]).toEqual([true, "2070"]);
});
