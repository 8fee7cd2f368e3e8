/**
 * A LUN of an iSCSI target as a pod uses it, and where it is noted and mounted. Pure. The layout and the note are upstream's.
 *
 * Source: kubernetes v1.36 pkg/volume/iscsi/{iscsi,iscsi_util}.go
 */
import { join } from "node:path";
import { type IscsiSource, iscsiPortal } from "../../../../core/api/meta/iscsi-names.ts";

/** What has to be known to log out again. */
export interface IscsiTarget {
  /** host:port; the first one names the disk. */
  readonly portals: readonly string[];
  readonly iqn: string;
  readonly lun: number;
  /** The record of iscsiadm by which one logs in. */
  readonly iface: string;
  /** The record is made for this disk, with a name of its own for the initiator. */
  readonly hasOwnIface: boolean;
}

export interface IscsiDisk extends IscsiTarget {
  /** Of the PersistentVolume; of an inline volume, its name in the pod. */
  readonly name: string;
  /** The record that the host's administrator has made. */
  readonly hostIface: string;
  /** Empty: the host's. */
  readonly initiatorName: string;
  readonly chap: { readonly discovery: boolean; readonly session: boolean; readonly secret: Readonly<Record<string, string>> };
  readonly fsType: string;
  readonly options: readonly string[];
  readonly readOnly: boolean;
  readonly block: boolean;
}

/** Whoever may make a pod writes these: they become the names of directories and lines of iscsiadm's records. */
const PART = /^[^/\s\p{Cc}]+$/u;

/** Throws an Error for the user. */
export function iscsiDisk(source: IscsiSource, rest: Pick<IscsiDisk, "name" | "options" | "readOnly" | "block"> & { readonly secret: Readonly<Record<string, string>> }): IscsiDisk {
  const { targetPortal, portals = [], iqn, lun, iscsiInterface: hostIface = "default", initiatorName = "", chapAuthDiscovery = false, chapAuthSession = false, fsType = "" } = source;
  const { secret, ...use } = rest;
  const parts = { targetPortal, iqn, iscsiInterface: hostIface, ...Object.fromEntries(portals.map((portal, i) => [`portals[${i}]`, portal])), ...(initiatorName === "" ? {} : { initiatorName }), ...(fsType === "" ? {} : { fsType }) };
  for (const [field, value] of Object.entries(parts)) if (!PART.test(value)) throw new Error(`iSCSI volume ${use.name} is refused: ${field} ${JSON.stringify(value)} may have neither "/" nor white space`);
  const first = iscsiPortal(targetPortal);
  return {
    ...use, portals: [...new Set([first, ...portals.map(iscsiPortal)])], iqn, lun, hostIface, iface: initiatorName === "" ? hostIface : `${first}:${use.name}`, hasOwnIface: initiatorName !== "", initiatorName, fsType,
    chap: { discovery: chapAuthDiscovery, session: chapAuthSession, secret },
  };
}

export function iscsiRoot(dataDir: string, block: boolean): string {
  return join(dataDir, "plugins/kubernetes.io/iscsi", block ? "volumeDevices" : "");
}

/** A file system is mounted here; of a device, whoever uses it has a link here. */
export function iscsiDirectory(dataDir: string, { portals, iqn, lun, iface, block }: Pick<IscsiDisk, "portals" | "iqn" | "lun" | "iface" | "block">): string {
  return join(iscsiRoot(dataDir, block), `iface-${iface}`, `${portals[0]}-${iqn}-lun-${lun}`);
}

/** What the name of such a directory tells; undefined: it is none. */
export function targetOfDirectory(iface: string, name: string): IscsiTarget | undefined {
  const parts = /^(.+?)-((?:iqn|eui|naa)\..+)-lun-(\d+)$/.exec(name);
  if (!parts || !iface.startsWith("iface-")) return undefined;
  return { portals: [parts[1]!], iqn: parts[2]!, lun: Number(parts[3]), iface: iface.slice("iface-".length), hasOwnIface: false };
}

/** iscsi.json */
export interface IscsiNote {
  readonly VolName: string;
  readonly Portals: readonly string[];
  readonly Iqn: string;
  readonly Lun: string;
  readonly InitIface: string;
  readonly Iface: string;
  readonly InitiatorName: string;
}

export function noteOf({ name, portals, iqn, lun, hostIface, iface, initiatorName }: IscsiDisk): IscsiNote {
  return { VolName: name, Portals: portals, Iqn: iqn, Lun: String(lun), InitIface: hostIface, Iface: iface, InitiatorName: initiatorName };
}

export function targetOfNote({ VolName, Portals, Iqn, Lun, Iface, InitiatorName }: IscsiNote): IscsiTarget {
  return { portals: Portals, iqn: Iqn, lun: Number(Lun), iface: Iface, hasOwnIface: InitiatorName !== "" && Iface === `${Portals[0]}:${VolName}` };
}
