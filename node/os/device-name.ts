/**
 * A block device by the name that mount(8) would show in the table of mounts, whatever link led to it: df, node exporters and repair tools look for that name.
 *
 * Source: util-linux lib/canonicalize.c, as upstream mounts with that program
 */
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { basename } from "node:path";

export interface DeviceNames {
  /** Throws where nothing is. */
  realpath(path: string): string;
  /** The name of a device of the device mapper, `device` being dm-<number>; throws where there is no such device. */
  mapped(device: string): string;
  exists(path: string): boolean;
}

const ON_THIS_MACHINE: DeviceNames = {
  realpath: (path) => realpathSync(path),
  mapped: (device) => readFileSync(`/sys/block/${device}/dm/name`, "utf8").trim(),
  exists: existsSync,
};

/** The path as it is where it leads nowhere. */
export function deviceName(path: string, names = ON_THIS_MACHINE): string {
  try {
    const real = names.realpath(path);
    return /^\/dev\/dm-\d+$/.test(real) ? mapperName(real, names) : real;
  } catch {
    return path;
  }
}

function mapperName(real: string, names: DeviceNames): string {
  try {
    const path = `/dev/mapper/${names.mapped(basename(real))}`;
    return names.exists(path) ? path : real;
  } catch {
    return real;
  }
}
