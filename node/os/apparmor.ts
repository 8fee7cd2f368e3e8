/** AppArmor, the security module of Linux' kernel that Debian, Ubuntu and SUSE use. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Profiles can be loaded only with the parser, and only where the kernel has it switched on. */
export function hasApparmor(): boolean {
  const enabled = "/sys/module/apparmor/parameters/enabled";
  return existsSync(enabled) && readFileSync(enabled, "utf8").startsWith("Y") && existsSync("/sys/kernel/security/apparmor") && ["/sbin", "/usr/sbin"].some((directory) => existsSync(join(directory, "apparmor_parser")));
}
