import { expect, test } from "vitest";
import { builtInResources } from "../api/schema/resources.ts";
import { gatesWithTheirResources, runtimeConfigProblem, servedResources } from "./runtime-config.ts";

test.each<[string, string | undefined]>([
  ["v1", undefined], ["batch/v1=true", undefined], ["api/ga=true", undefined], ["api/beta=false", undefined], ["storage.k8s.io/v1beta1=false", undefined], ["apps/v1/deployments=true", undefined],
  ["api/all=true", undefined], ["api/beta", undefined], ["resource.k8s.io/v1beta2=true", undefined], ["resource.k8s.io/v1beta1/deviceclasses=true", undefined],
  ["batch/v1=false", "batch/v1 is served by v1.36 by default, and cannot be switched off"],
  ["v1=false", "v1 is served by v1.36 by default, and cannot be switched off"],
  ["api/all=false", "api/all=false: the group versions that v1.36 serves by default cannot be switched off"],
  ["batch/v1beta1=true", "batch/v1beta1 is not served by v1.36, and cannot be switched on; of batch there are v1"],
  ["resource.k8s.io/v1beta1/devicetaintrules=true", "resource.k8s.io/v1beta1/devicetaintrules is not served by v1.36, and cannot be switched on; of resource.k8s.io there are v1, v1beta2, v1beta1, v1alpha3"],
  ["scheduling.k8s.io/v1alpha2=true", "scheduling.k8s.io/v1alpha2: what is in it needs the feature gates that are off in v1.36: GenericWorkload"],
  ["nothing.example.com/v1=true", "unknown api groups nothing.example.com/v1"],
  ["batch/v1=maybe", 'invalid value of batch/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax'],
  ["batch/v1=True", undefined], ["batch/v1=F", "batch/v1 is served by v1.36 by default, and cannot be switched off"], ["api/all=True", "invalid value api/all=True"],
])("%s: %s", (text, problem) => expect(runtimeConfigProblem(text, new Set())).toBe(problem));

test("what is behind a gate is served where that is switched on and its version is asked for", () => {
  const text = "storagemigration.k8s.io/v1beta1=true", gates = new Set(["StorageVersionMigrator"]);
  expect(runtimeConfigProblem(text, new Set())).toBe("storagemigration.k8s.io/v1beta1: what is in it needs the feature gates that are off in v1.36: StorageVersionMigrator");
  expect(runtimeConfigProblem(text, gates)).toBeUndefined();
  const migrations = (texts: readonly string[], on: ReadonlySet<string>): number => servedResources(texts, on).filter(({ group }) => group === "storagemigration.k8s.io").length;
  expect([migrations([text], gates), migrations(["api/beta=true"], gates), migrations([text], new Set()), migrations([], gates)]).toEqual([1, 1, 0, 0]);
  const scheduling = "scheduling.k8s.io/v1alpha2=true";
  expect(servedResources([scheduling], new Set(["GenericWorkload"])).filter(({ group, version }) => group === "scheduling.k8s.io" && version === "v1alpha2").map(({ plural }) => plural)).toEqual(["podgroups", "workloads"]);
  const certificates = "certificates.k8s.io/v1beta1=true";
  expect(runtimeConfigProblem(certificates, new Set())).toBe("certificates.k8s.io/v1beta1: what is in it needs the feature gates that are off in v1.36: ClusterTrustBundle and PodCertificateRequest");
  const alpha = "certificates.k8s.io/v1alpha1=true";
  expect(runtimeConfigProblem(alpha, new Set())).toBe("certificates.k8s.io/v1alpha1: what is in it needs the feature gates that are off in v1.36: ClusterTrustBundle");
  expect(servedResources([alpha], new Set(["ClusterTrustBundle"])).filter(({ group, version }) => group === "certificates.k8s.io" && version !== "v1").map(({ version, plural }) => `${version}/${plural}`)).toEqual(["v1alpha1/clustertrustbundles"]);
  expect(servedResources([certificates], new Set(["PodCertificateRequest"])).filter(({ group, version }) => group === "certificates.k8s.io" && version === "v1beta1").map(({ plural }) => plural)).toEqual(["podcertificaterequests"]);
});

const added = (...texts: string[]): string[] => {
  const standard = new Set(builtInResources.rows());
  const rows = servedResources(texts, new Set());
  expect([...standard].every((row) => rows.includes(row))).toBe(true);
  return rows.filter((row) => !standard.has(row)).map(({ group, version, plural }) => `${group}/${version}/${plural}`);
};

test.each<[string[], string[]]>([
  [[], []],
  [["api/ga=true", "api/beta=false"], []],
  [["storage.k8s.io/v1beta1=true"], ["storage.k8s.io/v1beta1/volumeattributesclasses"]],
  [["resource.k8s.io/v1beta1/deviceclasses"], ["resource.k8s.io/v1beta1/deviceclasses"]],
  [["networking.k8s.io/v1beta1=true", "networking.k8s.io/v1beta1/servicecidrs=false"], ["networking.k8s.io/v1beta1/ipaddresses"]],
  [["api/alpha=true", "admissionregistration.k8s.io/v1alpha1=false"], [
    "coordination.k8s.io/v1alpha2/leasecandidates", "resource.k8s.io/v1alpha3/devicetaintrules", "resource.k8s.io/v1alpha3/resourcepoolstatusrequests", "internal.apiserver.k8s.io/v1alpha1/storageversions",
  ]],
])("%j serve %j as well", (texts, rows) => expect(added(...texts)).toEqual(rows));

test("everything is more than every beta, whichever was said first", () => {
  expect(added("api/all=true")).toEqual(builtInResources.everyRow().filter((row) => row.gate === undefined && !builtInResources.rows().includes(row)).map(({ group, version, plural }) => `${group}/${version}/${plural}`));
  expect(added("api/beta=false", "api/all=true")).toEqual(added("api/alpha=true"));
});

test("a gate whose resource is not served does nothing, and is told of", () => {
  const gates = new Set(["DRADeviceTaintRules", "StorageVersionMigrator"]), lacks = { gate: "DRADeviceTaintRules", resource: "resource.k8s.io/v1beta2/devicetaintrules" };
  const of = (...texts: string[]) => { const { gates: left, lacking } = gatesWithTheirResources(gates, servedResources(texts, gates)); return [[...left], lacking]; };
  expect(of()).toEqual([["StorageVersionMigrator"], [lacks]]);
  expect(of("resource.k8s.io/v1beta2/devicetaintrules=true")).toEqual([[...gates], []]);
});

test("where groups of pods are not served, nobody waits for them", () => {
  const gates = new Set(["ClusterTrustBundle", "GangScheduling", "GenericWorkload", "WorkloadWithJob"]);
  const left = (...texts: string[]) => [...gatesWithTheirResources(gates, servedResources(texts, gates)).gates];
  const [GROUPS, WORKLOADS] = ["scheduling.k8s.io/v1alpha2/podgroups=true", "scheduling.k8s.io/v1alpha2/workloads=true"];
  expect([left(GROUPS, WORKLOADS), left(GROUPS), left()]).toEqual([[...gates], ["ClusterTrustBundle"], ["ClusterTrustBundle"]]);
});

test.each([["CoordinatedLeaderElection", "coordination.k8s.io/v1beta1/leasecandidates"], ["StorageVersionAPI", "internal.apiserver.k8s.io/v1alpha1/storageversions"]])("%s needs %s", (gate, resource) => {
  const gates = new Set([gate]), of = (...texts: string[]) => gatesWithTheirResources(gates, servedResources(texts, gates));
  expect([of(), of(`${resource}=true`)]).toEqual([{ gates: new Set(), lacking: [{ gate, resource }] }, { gates, lacking: [] }]);
});
