/**
 * --runtime-config: which group versions are served. Ours are those that v1.36 serves by default; what says so is accepted, what asks for something else is
 * refused, because it would change nothing.
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/{options/api_enablement,resourceconfig/helpers}.go
 */
import { builtInFacts } from "../api/schema/facts.ts";
import { builtInResources } from "../api/schema/resources.ts";

/** Whether what they stand for is served; undefined: some of it is. */
const SETS: Readonly<Record<string, boolean | undefined>> = { "api/all": undefined, "api/ga": true, "api/beta": false, "api/alpha": false, "api/legacy": true };

/** What is wrong with "batch/v1=true"; undefined: that is how it is. */
export function runtimeConfigProblem(text: string): string | undefined {
  const [key = "", value = "true"] = text.split("=").map((part) => part.trim());
  if (!["true", "false", ""].includes(value)) return `invalid value of ${key}: strconv.ParseBool: parsing ${JSON.stringify(value)}: invalid syntax`;
  const wanted = value !== "false";
  if (Object.hasOwn(SETS, key)) return SETS[key] === wanted ? undefined : `${key}=${wanted}: the group versions served are those of v1.36's defaults, and cannot be changed`;
  const [group = "", version = "", resource] = key === "v1" ? ["", "v1"] : key.split("/");
  const served = builtInResources.rows().filter((row) => row.group === group && row.version === version);
  if (!builtInFacts.groupVersions().some((one) => one.group === group) && served.length === 0) return `unknown api groups ${group}/${version}`;
  const isServed = resource === undefined ? served.length > 0 : served.some(({ plural }) => plural === resource);
  return isServed === wanted ? undefined : `${key} is ${isServed ? "" : "not "}served by v1.36 by default, and cannot be switched ${isServed ? "off" : "on"}`;
}
