/** A taint as flags have it: key=value:Effect, key:Effect. */
import type { Taint } from "../core/api/gen/core.v1.ts";
import { ConfigError } from "./config/config.ts";

/** Throws ConfigError for what is none. */
export function nodeTaint(text: string, flag = "--node-taint"): Taint {
  const match = /^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/.exec(text);
  if (!match) throw new ConfigError(`${flag} ${JSON.stringify(text)}: must be key=value:Effect with NoSchedule, PreferNoSchedule or NoExecute`);
  return { key: match[1]!, ...(match[2] ? { value: match[2] } : {}), effect: match[3] as NonNullable<Taint["effect"]> };
}
