import { ConfigError } from "./config/config.ts";

/** name=value of a flag. Throws ConfigError. */
export function pair(flag: string, text: string): [name: string, value: string] {
  const equals = text.indexOf("=");
  if (equals <= 0) throw new ConfigError(`${flag} ${JSON.stringify(text)}: must be name=value`);
  return [text.slice(0, equals), text.slice(equals + 1)];
}
