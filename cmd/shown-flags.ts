/** The settings a server runs with, for /flagz: what is secret is left out. */
import type { Settings } from "./config/flags.ts";

const SECRET: ReadonlySet<string> = new Set(["token"]);

export function shownFlags(settings: Settings): Record<string, string> {
  const flags: Record<string, string> = {};
  for (const [name, value] of Object.entries(settings)) {
    if (value === undefined) continue;
    const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    flags[flag] = SECRET.has(flag) ? "CENSORED" : Array.isArray(value) ? `[${value.join(",")}]` : String(value);
  }
  return flags;
}
