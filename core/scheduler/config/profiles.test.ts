import { expect, test } from "vitest";
import { labelValue } from "../../api/meta/names.ts";
import { DEFAULT_PROFILE, defaultProfile } from "../plugins.ts";
import { ConfigurationError } from "./configuration.ts";
import { schedulerSettings } from "./profiles.ts";

const HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
const names = (plugins: readonly { readonly name: string }[]): string[] => plugins.map(({ name }) => name);
const weights = (scores: readonly { readonly name: string; readonly weight: number }[]): Record<string, number> => Object.fromEntries(scores.map(({ name, weight }) => [name, weight]));

test("a configuration that says nothing is the default profile", () => {
  const { profiles: [profile], backoff, extenders } = schedulerSettings(HEAD);
  expect({ ...profile, filters: names(profile!.filters), scores: weights(profile!.scores) }).toEqual({ ...DEFAULT_PROFILE, filters: names(DEFAULT_PROFILE.filters), scores: weights(DEFAULT_PROFILE.scores) });
  expect([names(profile!.scores), backoff, extenders]).toEqual([names(DEFAULT_PROFILE.scores), { minMs: 1000, maxMs: 10_000 }, []]);
});

test("extenders that may be passed over are asked last", () => {
  const { extenders } = schedulerSettings(`${HEAD}extenders: [{urlPrefix: "http://x", ignorable: true}, {urlPrefix: "http://y"}, {urlPrefix: "http://z", ignorable: false}]`);
  expect(extenders.map(({ urlPrefix }) => urlPrefix)).toEqual(["http://y", "http://z", "http://x"]);
});

test("profiles: plugins off, on, weighed anew, and their arguments", () => {
  const { profiles: [packed, bare], backoff } = schedulerSettings(`${HEAD}podInitialBackoffSeconds: 2
percentageOfNodesToScore: 40
profiles:
- schedulerName: packed
  plugins:
    multiPoint: {disabled: [{name: ImageLocality}, {name: DefaultPreemption}]}
    score: {disabled: [{name: NodeAffinity}], enabled: [{name: NodeResourcesFit, weight: 9}]}
    preEnqueue: {disabled: [{name: "*"}]}
    postFilter: {disabled: [{name: "*"}]}
  pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}
  - {name: VolumeBinding, args: {bindTimeoutSeconds: 5}}
- schedulerName: bare
  percentageOfNodesToScore: 7
  plugins:
    multiPoint: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeName}, {name: TaintToleration, weight: 4}]}
`);
  expect(weights(packed!.scores)).toEqual({ NodeResourcesFit: 9, TaintToleration: 3, PodTopologySpread: 2, InterPodAffinity: 2, DynamicResources: 2, NodeResourcesBalancedAllocation: 1 });
  expect(names(packed!.filters)).toContain("NodeAffinity");
  expect({ ...packed, filters: 0, scores: 0 }).toMatchObject({ preemption: undefined, freesDevices: false, bindsDevices: true, honorsGates: false, awaitsClaims: false, bindTimeoutMs: 5000, percentageOfNodesToScore: 40 });
  expect([names(bare!.filters), weights(bare!.scores), bare!.percentageOfNodesToScore]).toEqual([["NodeName", "TaintToleration"], { TaintToleration: 4 }, 7]);
  expect(backoff).toEqual({ minMs: 2000, maxMs: 10_000 });
});

const profile = (plugins: string): string => `${HEAD}profiles: [{${plugins}}]`;
const args = (name: string, value: string): string => profile(`pluginConfig: [{name: ${name}, args: ${value}}]`);
const AT = "profiles[0].pluginConfig[0].args";
const FIT = `initializing profiles: creating profile for scheduler name default-scheduler: initializing plugin "NodeResourcesFit"`;

test.each([
  ["kind: KubeSchedulerConfiguration", "Object 'apiVersion' is missing in 'kind: KubeSchedulerConfiguration'"],
  ["kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1beta3", `no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta3": a KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1 is wanted`],
  [`${HEAD}parallelism: 1\nparallelism: 2\nfoo: 1`, `strict decoding error: yaml: unmarshal errors:\n  line 4: key "parallelism" already set in map, unknown field "foo"`],
  [`${HEAD}foo: 1\nprofiles: [{plugins: {filters: {}}}]`, `strict decoding error: unknown field "foo", unknown field "profiles[0].plugins.filters"`],
  [`${HEAD}parallelism: 0\npodMaxBackoffSeconds: 0`, "[parallelism: Invalid value: 0: should be an integer value greater than zero, podMaxBackoffSeconds: Invalid value: 0: must be greater than or equal to PodInitialBackoffSeconds]"],
  [`${HEAD}profiles: [{schedulerName: a}, {schedulerName: a}]`, "profiles[1].schedulerName: Duplicate value: {}"],
  [`${HEAD}profiles: [{}, {schedulerName: a}]`, "profiles[0].schedulerName: Required value"],
  [`${HEAD}percentageOfNodesToScore: 101`, "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
  [`${HEAD}extenders: [{urlPrefix: "http://x", prioritizeVerb: p, bindVerb: b}, {urlPrefix: "http://y", bindVerb: b, managedResources: [{name: cpu}]}]`,
    `[extenders[0].weight: Invalid value: 0: must have a positive weight applied to it, extenders[1].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name, extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind]`],
  [args("NodeResourcesFit", "{scoringStrategy: {type: Mostly}}"), `${FIT}: scoringStrategy.type: Unsupported value: "Mostly": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"`],
  [args("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 5, score: 11}, {utilization: 5, score: 1}]}}}"),
    `${FIT}: [scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 5: values must be sorted in increasing order, scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]]`],
  [args("PodTopologySpread", "{defaultConstraints: [{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: Maybe}]}"),
    `[${AT}.defaultingType: Invalid value: "System": when .defaultConstraints are not empty, ${AT}.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf), ${AT}.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Maybe": supported values: "DoNotSchedule", "ScheduleAnyway"]`],
  [args("InterPodAffinity", "{hardPodAffinityWeight: 101}"), `${AT}.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]`],
  [args("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}"), `[${AT}.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute, ${AT}.minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage]`],
  [args("NodeAffinity", "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: [b]}, {key: a, operator: Exists, values: [b]}, {key: a, operator: In}, {key: a, operator: In, values: ['!']}, {key: a, operator: Like}]}]}}}"), `[${[
    `[0].values[0]: Invalid value: "b": for 'Gt', 'Lt' operators, the value must be an integer`, `[1].values: Invalid value: ["b"]: values set must be empty for exists and does not exist`, "[2].values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
    `[3].values[0][a]: Invalid value: "!": ${labelValue("!")[0]!}`, `[4].operator: Unsupported value: "Like": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"`,
  ].map((problem) => `${AT}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions${problem}`).join(", ")}]`],
  [args("VolumeBinding", "{bindTimeout: 1}"), `strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin VolumeBinding: strict decoding error: unknown field "bindTimeout"`],
  [args("VolumeBinding", "{shape: [{utilization: 1, score: 2}]}"), `${AT}.shape: Invalid value: [{"Utilization":1,"Score":2}]: unexpected field \`shape\`, remove it or turn on the feature gate StorageCapacityScoring`],
  [`${HEAD}clientConnection: {burst: -1}`, "clientConnection.burst: Invalid value: -1: must be non-negative"],
  [profile("plugins: {score: {enabled: [{name: NodeAffinity, weight: -1}]}}"), "initializing profiles: creating profile for scheduler name default-scheduler: score plugins: total score of Score plugins could overflow"],
  [args("VolumeBinding", "{bindTimeoutSeconds: -1}"), `${AT}.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value`],
  [args("InterPodAffinity", "{kind: NodeAffinityArgs}"), "decoding .profiles[0].pluginConfig[0]: args for plugin InterPodAffinity were not of type InterPodAffinityArgs.kubescheduler.config.k8s.io, got NodeAffinityArgs.kubescheduler.config.k8s.io"],
  [profile("plugins: {filter: {enabled: [{name: EBSLimits}]}}"), `profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")`],
  [profile("plugins: {filter: {enabled: [{name: Mine}]}}"), `initializing profiles: creating profile for scheduler name default-scheduler: FilterPlugin "Mine" does not exist`],
  [profile("plugins: {score: {enabled: [{name: NodeName}]}}"), `initializing profiles: creating profile for scheduler name default-scheduler: plugin "NodeName" does not extend ScorePlugin plugin`],
  [profile("plugins: {bind: {disabled: [{name: '*'}]}}"), `initializing profiles: creating profile for scheduler name default-scheduler: at least one bind plugin is needed for profile with scheduler name "default-scheduler"`],
  [`${HEAD}parallelism: x\nfoo: 1`, "json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.parallelism of type int32"],
  [`${HEAD}parallelism: 3000000000`, "json: cannot unmarshal number 3000000000 into Go struct field KubeSchedulerConfiguration.parallelism of type int32"],
  [`${HEAD}leaderElection: {leaseDuration: 5}`, "json: cannot unmarshal number into Go struct field LeaderElectionConfiguration.leaderElection.leaseDuration of type string"],
  [`${HEAD}leaderElection: {leaseDuration: soon}`, 'time: invalid duration "soon"'],
  [`${HEAD}leaderElection: {leaseDuration: -1s}`, '[leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero, leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`]'],
  [`${HEAD}profiles: {}`, "json: cannot unmarshal object into Go struct field KubeSchedulerConfiguration.profiles of type []v1.KubeSchedulerProfile"],
  [profile("plugins: {score: {enabled: [{name: NodeAffinity, weight: 1.5}]}}"), "json: cannot unmarshal number 1.5 into Go struct field Plugin.profiles.plugins.score.enabled.weight of type int32"],
  [profile("plugins: {placementGenerate: {enabled: [{name: Mine}]}}"), 'initializing profiles: creating profile for scheduler name default-scheduler: PlacementGeneratePlugin "Mine" does not exist'],
  ["apiVersion: kubescheduler.config.k8s.io/v1\nkind: NodeAffinityArgs", "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, Kind=NodeAffinityArgs: "],
  [args("DefaultPreemption", "{minCandidateNodesPercentage: x}"), "decoding .profiles[0].pluginConfig[0]: decoding args for plugin DefaultPreemption: json: cannot unmarshal string into Go struct field DefaultPreemptionArgs.minCandidateNodesPercentage of type int32"],
  [args("DefaultPreemption", "{kind: Other}"), 'decoding .profiles[0].pluginConfig[0]: decoding args for plugin DefaultPreemption: no kind "Other" is registered for version "kubescheduler.config.k8s.io/v1"'],
  [args("NodeAffinity", "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {foo: 1}}}"), 'strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin NodeAffinity: strict decoding error: unknown field "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.foo"'],
  [args("DynamicResources", "{filterTimeout: -1h30m}"), `${AT}.filterTimeout: Invalid value: "-1h30m0s": must be zero or positive`],
  [`${HEAD}extenders: [{urlPrefix: "https://x", tlsConfig: {insecure: true, caFile: /ca}}]`, "couldn't build extenders: specifying a root certificates file with the insecure flag is not allowed"],
  [`${HEAD}extenders: [{urlPrefix: "https://x", tlsConfig: {caData: YQ==}}]`, "couldn't build extenders: unable to load root certificates: unable to parse bytes as PEM block"],
  [`${HEAD}extenders: [{urlPrefix: "http://x", managedResources: [{name: example.com/x, ignoredByScheduler: true}]}]\nprofiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]`, "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"],
  [`${HEAD}extenders: [{urlPrefix: "https://x", tlsConfig: {caData: "!!"}}]`, "illegal base64 data at input byte 0"],
])("what is wrong is said: %s", (text, problem) => {
  expect(() => schedulerSettings(text)).toThrow(new ConfigurationError(problem));
});

test("what a profile prefers, but weighs nothing, is not judged", () => {
  const prefers = (weight: number): string => args("NodeAffinity", `{addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: ${weight}, preference: {matchExpressions: [{key: a, operator: In, values: ["!"]}]}}]}}`);
  expect(schedulerSettings(prefers(0)).profiles).toHaveLength(1);
  expect(() => schedulerSettings(prefers(1))).toThrow(ConfigurationError);
});

test("GangScheduling is among the plugins, and may be named, where its gate is switched on", () => {
  const on = new Set(["GenericWorkload", "GangScheduling"]);
  const gangs = (text: string, gates?: ReadonlySet<string>) => schedulerSettings(text, gates).profiles[0]!.gangs;
  expect([gangs(HEAD), gangs(HEAD, new Set(["GenericWorkload"])), gangs(HEAD, on)]).toEqual([undefined, undefined, { awaited: true, permitted: true }]);
  expect(gangs(profile("plugins: {permit: {disabled: [{name: GangScheduling}]}}"), on)).toEqual({ awaited: true, permitted: false });
  expect(gangs(profile('plugins: {multiPoint: {disabled: [{name: GangScheduling}]}}'), on)).toEqual({ awaited: false, permitted: false });
  expect(() => gangs(profile("plugins: {permit: {enabled: [{name: GangScheduling}]}}"))).toThrow('PermitPlugin "GangScheduling" does not exist');
  expect([defaultProfile(new Set()), defaultProfile(on).gangs]).toEqual([DEFAULT_PROFILE, { awaited: true, permitted: true }]);
});

test("so are those of topology, and what they weigh", () => {
  const on = new Set(["GenericWorkload", "TopologyAwareWorkloadScheduling"]);
  const placements = (text: string, gates?: ReadonlySet<string>) => schedulerSettings(text, gates).profiles[0]!.placements;
  const resources = { cpu: 1, memory: 1 };
  expect([placements(HEAD), placements(HEAD, on), defaultProfile(on).placements]).toEqual([undefined, { byTopology: true, podsWeight: 1, fitWeight: 1, resources }, { byTopology: true, podsWeight: 1, fitWeight: 1, resources }]);
  expect(placements(profile("plugins: {placementScore: {enabled: [{name: PodGroupPodsCount, weight: 5}], disabled: [{name: NodeResourcesFit}]}, placementGenerate: {disabled: [{name: '*'}]}}"), on)).toEqual({ byTopology: false, podsWeight: 5, fitWeight: 0, resources });
});

test("storage is scored where its gate is on, by the shape that is given or the emptiest first; what is wrong with a shape is told", () => {
  const gates = new Set(["StorageCapacityScoring"]);
  const scored = (text: string, on?: ReadonlySet<string>) => schedulerSettings(text, on).profiles[0]!.scores.find(({ name }) => name === "VolumeBinding")?.weight;
  const weighted = profile("plugins: {score: {enabled: [{name: VolumeBinding, weight: 7}]}}");
  expect([scored(profile("schedulerName: s")), scored(profile("schedulerName: s"), gates), scored(weighted), scored(weighted, gates), scored(args("VolumeBinding", "{shape: [{utilization: 1, score: 2}]}"), gates)]).toEqual([undefined, 1, undefined, 7, 1]);
  expect(() => schedulerSettings(args("VolumeBinding", "{shape: [{utilization: 50, score: 2}, {utilization: 50, score: 11}]}"), gates)).toThrow(`[${AT}.shape[1].utilization: Invalid value: 50: values must be sorted in increasing order, ${AT}.shape[1].score: Invalid value: 11: not in valid range [0, 10]]`);
});
