/**
 * Kernel settings under /proc/sys, each remembered as it was before we changed it, for installers/linux/uninstall.sh to put back unless somebody else has changed it since.
 *
 *   const settings = sysctlKeeper({ recordFile, log });
 *   settings.set("net.ipv4.ip_forward", "1");
 *
 * A setting that is not there or cannot be written is a warning: containers and small kernels lack some, and the node may do without.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Log } from "../../core/observe/log.ts";

export interface SysctlKeeper {
  /** The value now; undefined when the kernel has no such setting. */
  get(name: string): string | undefined;
  /** The value that it had before we changed it, or has if we have not. */
  getOriginal(name: string): string | undefined;
  /** True if the setting has the value now. */
  set(name: string, value: string): boolean;
  /** For limits: true if the setting is at least `value` now. */
  raise(name: string, value: number): boolean;
}

interface Change { readonly before: string; readonly after: string }

export function sysctlKeeper({ recordFile, log, root = "/proc/sys" }: { readonly recordFile: string; readonly log: Log; readonly root?: string }): SysctlKeeper {
  /** Interface names may have dots: written as slashes between the parts, as sysctl(8) does. */
  const pathOf = (name: string): string => join(root, name.includes("/") ? name : name.replaceAll(".", "/"));

  function get(name: string): string | undefined {
    const path = pathOf(name);
    if (!existsSync(path)) return undefined;
    try {
      return readFileSync(path, "utf8").trim();
    } catch (error) {
      log.debug("a kernel setting cannot be read", { name, error });
      return undefined;
    }
  }

  function record(): Record<string, Change> {
    if (!existsSync(recordFile)) return {};
    try {
      return JSON.parse(readFileSync(recordFile, "utf8")) as Record<string, Change>;
    } catch (error) {
      log.warn("the record of changed kernel settings cannot be read, starting a new one", { file: recordFile, error });
      return {};
    }
  }

  function set(name: string, value: string): boolean {
    const before = get(name);
    if (before === undefined) return false;
    if (before === value) return true;
    try {
      const changes = record();
      mkdirSync(dirname(recordFile), { recursive: true });
      writeFileSync(`${recordFile}.new`, JSON.stringify({ ...changes, [name]: { before: changes[name]?.before ?? before, after: value } }));
      renameSync(`${recordFile}.new`, recordFile);
      writeFileSync(pathOf(name), value);
      log.info("kernel setting changed", { name, before, after: value });
      return true;
    } catch (error) {
      log.warn("a kernel setting cannot be changed", { name, before, wanted: value, error });
      return false;
    }
  }

  return {
    get,
    getOriginal: (name) => record()[name]?.before ?? get(name),
    set,
    raise(name, value) {
      const now = Number(get(name) ?? Number.NaN);
      return now >= value || (!Number.isNaN(now) && set(name, String(value)));
    },
  };
}
