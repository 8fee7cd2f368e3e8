/**
 * --runtime-config: which group versions and resources are served beside those of v1.36's defaults. What is served by default cannot be switched off, because
 * this server's own controllers live on it; what would still not be served is refused, because it would change nothing.
 *
 *   api/all, api/ga, api/beta, api/alpha        all versions of that stability, before what is said of single ones
 *   resource.k8s.io/v1beta1[/deviceclasses]     one version, or one resource of it
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/{options/api_enablement,resourceconfig/helpers}.go, pkg/controlplane/instance.go
 */
import { parseGoBool } from "../api/meta/go-bool.ts";
import { builtInFacts } from "../api/schema/facts.ts";
import { builtInResources, type ResourceRow } from "../api/schema/resources.ts";

/** Whether the defaults, all of them served, are of it; and what else is. Upstream applies them in this order. */
const SETS: readonly { readonly name: string; readonly hasDefaults: boolean; readonly pattern: RegExp }[] = [
  { name: "api/all", hasDefaults: true, pattern: /^v/ },
  { name: "api/ga", hasDefaults: true, pattern: /^v\d+$/ },
  { name: "api/legacy", hasDefaults: true, pattern: /^$/ },
  { name: "api/beta", hasDefaults: false, pattern: /^v\d+beta\d+$/ },
  { name: "api/alpha", hasDefaults: false, pattern: /^v\d+alpha\d+$/ },
];

interface Wish { readonly key: string; readonly wanted: boolean }

function wishOf(text: string): Wish {
  const [key = "", value = ""] = text.split("=").map((part) => part.trim());
  return { key: key === "v1" ? "/v1" : key, wanted: parseGoBool(value) !== false };
}

/** What is wrong with "batch/v1=true"; undefined: so it can be. `gates`: those that are switched on. */
export function runtimeConfigProblem(text: string, gates: ReadonlySet<string>): string | undefined {
  const [name = "", value = ""] = text.split("=").map((part) => part.trim());
  const { key, wanted } = wishOf(text);
  const set = SETS.find((one) => one.name === key);
  if (set && !["true", "false", ""].includes(value)) return `invalid value ${name}=${value}`;
  if (value !== "" && parseGoBool(value) === undefined) return `invalid value of ${name}: ${value}, err: strconv.ParseBool: parsing ${JSON.stringify(value)}: invalid syntax`;
  if (set) return set.hasDefaults && !wanted ? `${key}=false: the group versions that v1.36 serves by default cannot be switched off` : undefined;
  const [group = "", version = "", resource] = key.split("/");
  const about = (row: ResourceRow): boolean => row.group === group && row.version === version && (resource === undefined || row.plural === resource);
  if (builtInResources.rows().some(about)) return wanted ? undefined : `${name} is served by v1.36 by default, and cannot be switched off`;
  const rows = builtInResources.everyRow().filter(about);
  if (rows.some((row) => isThere(row, gates)) || !wanted) return knownGroup(group) ? undefined : `unknown api groups ${group}/${version}`;
  if (!knownGroup(group)) return `unknown api groups ${group}/${version}`;
  if (rows.length > 0) return `${name}: what is in it needs the feature gates that are off in v1.36: ${[...new Set(rows.map(({ gate }) => gate))].join(" and ")}`;
  return `${name} is not served by v1.36, and cannot be switched on; of ${group} there are ${versionsOf(group).join(", ")}`;
}

function isThere({ gate }: ResourceRow, gates: ReadonlySet<string>): boolean { return gate === undefined || gates.has(gate); }

function knownGroup(group: string): boolean {
  return builtInFacts.groupVersions().some((one) => one.group === group) || builtInResources.everyRow().some((row) => row.group === group);
}

function versionsOf(group: string): string[] {
  return builtInResources.everyGroupVersion().filter((one) => one.group === group).map(({ version }) => version);
}

/** What gates need beside them before anything can come of them. */
const GROUPS_OF_PODS: readonly string[] = ["scheduling.k8s.io/v1alpha2/podgroups", "scheduling.k8s.io/v1alpha2/workloads"];
const LIVES_ON: Readonly<Record<string, readonly string[]>> = {
  CoordinatedLeaderElection: ["coordination.k8s.io/v1beta1/leasecandidates"], StorageVersionAPI: ["internal.apiserver.k8s.io/v1alpha1/storageversions"],
  DRADeviceTaintRules: ["resource.k8s.io/v1beta2/devicetaintrules"], DRAResourcePoolStatus: ["resource.k8s.io/v1alpha3/resourcepoolstatusrequests"],
  GangScheduling: GROUPS_OF_PODS, GenericWorkload: GROUPS_OF_PODS, TopologyAwareWorkloadScheduling: GROUPS_OF_PODS, WorkloadAwarePreemption: GROUPS_OF_PODS, WorkloadWithJob: GROUPS_OF_PODS,
};

/** Of the gates those that need no resource, or one that is served; and what the others lack. Upstream's parts wait for what is not served, and do nothing meanwhile. */
export function gatesWithTheirResources(gates: ReadonlySet<string>, served: readonly ResourceRow[]): { readonly gates: ReadonlySet<string>; readonly lacking: readonly { readonly gate: string; readonly resource: string }[] } {
  const names = new Set(served.map(({ group, version, plural }) => `${group}/${version}/${plural}`));
  const lacking = [...gates].flatMap((gate) => (LIVES_ON[gate] ?? []).filter((resource) => !names.has(resource)).slice(0, 1).map((resource) => ({ gate, resource })));
  return { gates: gates.difference(new Set(lacking.map(({ gate }) => gate))), lacking };
}

/** The resources to serve, in discovery's order. Of texts without a problem. */
export function servedResources(texts: readonly string[], gates: ReadonlySet<string>): ResourceRow[] {
  const wishes = new Map(texts.map(wishOf).map(({ key, wanted }) => [key, wanted]));
  const byDefault = new Set(builtInResources.rows());
  return builtInResources.everyRow().filter((row) => {
    if (!isThere(row, gates)) return false;
    const { group, version, plural } = row;
    const sets = SETS.filter(({ pattern }) => pattern.test(version)).map(({ name }) => wishes.get(name));
    const said = wishes.get(`${group}/${version}/${plural}`) ?? wishes.get(`${group}/${version}`) ?? sets.findLast((wanted) => wanted !== undefined);
    return byDefault.has(row) || said === true;
  });
}
