/** registries.yaml, read: node/runtime/registries.ts says what may stand in it. */
import { decodeRegistries, NO_REGISTRIES, type Registries } from "../node/runtime/registries.ts";
import { ConfigError, readText } from "./config/config.ts";
import { readYamlSettings } from "./config/yaml-settings.ts";

/** Throws ConfigError. */
export function registriesOf(path: string): Registries {
  const text = readText(path);
  if (text === undefined) return NO_REGISTRIES;
  try {
    return decodeRegistries(readYamlSettings(text, { schema: "failsafe", customTags: ["null"] })); // texts as they stand there: a password of digits is no number; but null is nothing
  } catch (cause) {
    throw new ConfigError(`--private-registry ${path}: ${(cause as Error).message}`, { cause });
  }
}
