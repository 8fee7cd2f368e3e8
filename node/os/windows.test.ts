/** The Windows halves, as far as they can be tried here: what they make of what Windows says, and junctions as symbolic links. */
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { windowsCgroups } from "./cgroup.windows.ts";
import { windowsBuild, windowsMachineInfo } from "./machine.windows.ts";
import { readCommitCharge } from "./commit-charge.windows.ts";
import { MountError } from "./mount.ts";
import { windowsMounts } from "./mount.windows.ts";
import { parseRegistry } from "./registry.windows.ts";

const SERVER_2022 = [
  "", "HKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion", "    SystemRoot    REG_SZ    C:\\Windows", "    CurrentBuildNumber    REG_SZ    20348",
  "    CurrentMajorVersionNumber    REG_DWORD    0xa", "    CurrentMinorVersionNumber    REG_DWORD    0x0", "    UBR    REG_DWORD    0xa3d", "    ProductName    REG_SZ    Windows Server 2022 Datacenter",
  "    RegisteredOwner    REG_SZ    ", "", "HKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\AeDebug", "",
].join("\r\n");

test("a machine is what its registry says", () => {
  const keys: Record<string, string> = {
    "HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion": SERVER_2022, "HKLM\\SYSTEM\\HardwareConfig": "    LastConfig    REG_SZ    {4c4c4544-0000-2010-8020-80c04f202020}",
    "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management\\PrefetchParameters": "    BootId    REG_DWORD    0x2a",
  };
  expect(windowsMachineInfo((key) => parseRegistry(keys[key]!))).toMatchObject({
    os: "windows", windowsBuild: "10.0.20348", kernelVersion: "10.0.20348.2621", osImage: "Windows Server 2022 Datacenter", systemUuid: "4c4c4544-0000-2010-8020-80c04f202020", bootId: "42",
  });
  expect(windowsBuild(new Map(), "10.0.26100")).toBe("10.0.26100");
  expect(parseRegistry(SERVER_2022).get("RegisteredOwner")).toBe("");
});

test("volumes are directories and junctions", () => {
  const root = mkdtempSync(join(tmpdir(), "windows-mounts-"));
  const mounts = windowsMounts();
  const at = (...parts: string[]): string => join(root, ...parts);
  const codeOf = (work: () => void): string => { try { work(); return "none"; } catch (error) { return error instanceof MountError ? error.code : (error as NodeJS.ErrnoException).code ?? "?"; } };
  try {
    mounts.mount({ source: "tmpfs", target: at("memory"), fsType: "tmpfs" });
    expect(lstatSync(at("memory")).isDirectory()).toBe(true);
    mkdirSync(at("disk", "data"), { recursive: true });
    writeFileSync(at("disk", "data", "precious"), "x");
    mkdirSync(at("pod", "volumes", "v"), { recursive: true });
    mounts.bind(at("disk", "data"), at("pod", "volumes", "v"));
    mounts.bind(at("disk", "data"), at("pod", "volumes", "v")); // again
    expect(readlinkSync(at("pod", "volumes", "v"))).toBe(at("disk", "data"));
    expect(mounts.isMountPoint(at("pod", "volumes", "v"))).toBe(true);
    expect(mounts.unmountAll(at("pod"))).toEqual([at("pod", "volumes", "v")]);
    expect(existsSync(at("pod", "volumes", "v"))).toBe(false);
    expect(readdirSync(at("disk", "data"))).toEqual(["precious"]);
    expect(mounts.unmountAll(at("not there"))).toEqual([]);
    expect(codeOf(() => mounts.bind(at("disk", "data", "precious"), at("file")))).toBe("ENOTDIR");
    expect(codeOf(() => mounts.bind(at("disk"), at("ro"), { readOnly: true }))).toBe("ENOSYS");
    expect(codeOf(() => mounts.bind(at("disk"), at("disk", "data")))).toBe("ENOTEMPTY");
    expect(codeOf(() => mounts.mount({ source: "server:/x", target: at("n"), fsType: "nfs" }))).toBe("ENOSYS");
  } finally {
    rmSync(root, { recursive: true });
  }
});

test("the machine as a whole has usage, pods have no cgroups", () => {
  const bytes = new Uint8Array(104);
  const view = new DataView(bytes.buffer);
  for (const [at, count] of [3_000_000, 5_000_000, 4_000_000, 2_000_000, 100_000, 0, 0, 0, 0, 4096].entries()) view.setBigUint64(8 + 8 * at, BigInt(count), true);
  const cgroups = windowsCgroups(() => readCommitCharge(bytes));
  expect(cgroups.usage("/")!.availableBytes).toBe(2_000_000 * 4096); // of memory and page files together, though more than that of the memory may be free, or less
  expect(windowsCgroups(() => undefined).usage("/")!.availableBytes).toBeUndefined();
  expect(cgroups.usage("/")!.workingSetBytes).toBeGreaterThan(0);
  expect(cgroups.usage("/kubepods/pod1")).toBeUndefined();
  expect(cgroups.remove("/kubepods/pod1")).toBe(true);
});
