/** Windows' registry, by way of `reg.exe`, which every Windows has. Read at the start of the process only, so it waits for the answer. */
import { execFileSync } from "node:child_process";

/** Values of one key, by name: numbers in decimal. Empty if there is no such key. */
export function registryValues(key: string): ReadonlyMap<string, string> {
  let text: string;
  try {
    text = execFileSync("reg.exe", ["query", key], { encoding: "utf8", windowsHide: true, stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    return new Map(); // exit code 1: no such key
  }
  return parseRegistry(text);
}

/** What `reg query KEY` prints: the key, then "    name    REG_SZ    value" for each value, then the keys below it. Pure. */
export function parseRegistry(text: string): Map<string, string> {
  return new Map(text.split(/\r?\n/).flatMap((line) => {
    const [, name, type, value = ""] = /^ {4}(.+?) {4}(REG_[A-Z_]+)(?: {4}(.*))?$/.exec(line) ?? [];
    if (name === undefined || type === undefined) return [];
    return [[name, type === "REG_DWORD" || type === "REG_QWORD" ? String(Number(value)) : value] as const];
  }));
}
