/**
 * The machine's file systems that lie on block devices: how full they are, and what their devices have done.
 *
 * API: https://docs.kernel.org/admin-guide/iostats.html
 */
import { statfs } from "node:fs/promises";
import { parseMountinfo } from "../../os/mount-table.ts";

export interface DiskFigures {
  readonly device: string;
  readonly limitBytes: number;
  readonly usageBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
  readonly reads: number;
  readonly readsMerged: number;
  readonly sectorsRead: number;
  readonly readSeconds: number;
  readonly writes: number;
  readonly writesMerged: number;
  readonly sectorsWritten: number;
  readonly writeSeconds: number;
  readonly inProgress: number;
  readonly ioSeconds: number;
  readonly weightedSeconds: number;
}

type Sizes = Pick<DiskFigures, "limitBytes" | "usageBytes" | "inodes" | "inodesFree">;
type Work = Omit<DiskFigures, keyof Sizes | "device">;

/** That can be written to: images of packages are always full, and no device. */
const TYPES: ReadonlySet<string> = new Set(["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "vfat"]);

/** One a device, as it is mounted first. */
export async function diskFigures({ mountinfo, diskstats, sizes = sizesOf }: { readonly mountinfo: string; readonly diskstats: string; readonly sizes?: (target: string) => Promise<Sizes> }): Promise<DiskFigures[]> {
  const works = parseDiskstats(diskstats);
  const disks = new Map<string, { readonly target: string; readonly work: Work }>();
  for (const line of mountinfo.split("\n")) {
    const [{ source, target, fsType } = { source: "", target: "", fsType: "" }] = parseMountinfo(line);
    const work = works.get(line.split(" ")[2] ?? "") ?? works.get(source); // btrfs has numbers of its own
    if (TYPES.has(fsType) && work && !disks.has(source)) disks.set(source, { target, work });
  }
  const found = await Promise.all([...disks].map(async ([device, { target, work }]) => {
    try {
      return [{ device, ...(await sizes(target)), ...work }];
    } catch {
      return []; // unmounted meanwhile
    }
  }));
  return found.flat();
}

/** By the device's numbers and by /dev/NAME. */
function parseDiskstats(text: string): ReadonlyMap<string, Work> {
  return new Map(text.split("\n").flatMap((line) => {
    const [major, minor, name, ...values] = line.trim().split(/\s+/);
    if (name === undefined || values.length < 11) return [];
    const [reads, readsMerged, sectorsRead, readMs, writes, writesMerged, sectorsWritten, writeMs, inProgress, ioMs, weightedMs] = values.map(Number) as [number, number, number, number, number, number, number, number, number, number, number];
    const work: Work = { reads, readsMerged, sectorsRead, readSeconds: readMs / 1000, writes, writesMerged, sectorsWritten, writeSeconds: writeMs / 1000, inProgress, ioSeconds: ioMs / 1000, weightedSeconds: weightedMs / 1000 };
    return [[`${major}:${minor}`, work] as const, [`/dev/${name}`, work] as const];
  }));
}

async function sizesOf(target: string): Promise<Sizes> {
  const { blocks, bsize, bfree, files, ffree } = await statfs(target);
  return { limitBytes: blocks * bsize, usageBytes: (blocks - bfree) * bsize, inodes: files, inodesFree: ffree };
}
