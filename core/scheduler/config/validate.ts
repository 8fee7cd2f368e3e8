/**
 * What is wrong with a KubeSchedulerConfiguration that could be read, in upstream's words.
 *
 * Source: kubernetes v1.36 pkg/scheduler/apis/config/validation
 */
import type { NodeSelectorTerm } from "../../api/gen/core.v1.ts";
import { formatDurationNs, parseDurationMs, parseDurationNs } from "../../api/meta/duration.ts";
import { duplicate, type FieldError, forbidden, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import { goInteger } from "../../api/meta/go-integer.ts";
import { labelValue, qualifiedName } from "../../api/meta/names.ts";
import { isExtendedResource } from "../../api/meta/resource-names.ts";
import { API_VERSION, argsOf, EXTENSION_POINTS, type ExtenderConfig, type PluginArgs, type PluginSet, type ProfileConfig, type SchedulerConfiguration, type ShapePoint } from "./configuration.ts";

/** Plugins that older versions had. */
const REMOVED = new Set(["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"]);

export function validateConfiguration(configuration: SchedulerConfiguration): FieldError[] {
  const { clientConnection, parallelism, leaderElection, profiles, percentageOfNodesToScore, podInitialBackoffSeconds, podMaxBackoffSeconds, extenders } = configuration;
  const seen = new Set<string>();
  return [
    ...((clientConnection.burst ?? 0) < 0 ? [invalid("clientConnection.burst", clientConnection.burst, "must be non-negative")] : []),
    ...validateLeaderElection(leaderElection),
    ...((leaderElection.leaderElect ?? true) && leaderElection.resourceLock && leaderElection.resourceLock !== "leases" ? [invalid("leaderElection.resourceLock", leaderElection.resourceLock, 'resourceLock value must be "leases"')] : []),
    ...(parallelism <= 0 ? [invalid("parallelism", parallelism, "should be an integer value greater than zero")] : []),
    ...profiles.flatMap((profile, i) => {
      const path = index("profiles", i);
      const again = seen.has(profile.schedulerName);
      seen.add(profile.schedulerName);
      return [...validateProfile(path, profile, configuration), ...(again ? [duplicate(`${path}.schedulerName`, {})] : [])];
    }),
    ...validateQueueSort(profiles),
    ...validatePercentage("percentageOfNodesToScore", percentageOfNodesToScore),
    ...(podInitialBackoffSeconds <= 0 ? [invalid("podInitialBackoffSeconds", podInitialBackoffSeconds, "must be greater than 0")] : []),
    ...(podMaxBackoffSeconds < podInitialBackoffSeconds ? [invalid("podMaxBackoffSeconds", podMaxBackoffSeconds, "must be greater than or equal to PodInitialBackoffSeconds")] : []),
    ...validateExtenders(extenders),
  ];
}

/** Source: component-base config/validation ValidateLeaderElectionConfiguration, config/v1alpha1/defaults.go */
function validateLeaderElection({ leaderElect = true, leaseDuration, renewDeadline, retryPeriod }: SchedulerConfiguration["leaderElection"]): FieldError[] {
  if (!leaderElect) return [];
  const given = (text: string | undefined, or: string): bigint => (text === undefined || parseDurationNs(text) === 0n ? parseDurationNs(or) : parseDurationNs(text));
  const times = { leaseDuration: given(leaseDuration, "15s"), renewDeadline: given(renewDeadline, "10s"), retryPeriod: given(retryPeriod, "2s") };
  return [
    ...Object.entries(times).flatMap(([name, ns]) => (ns <= 0n ? [invalid(`leaderElection.${name}`, formatDurationNs(ns), "must be greater than zero")] : [])),
    ...(times.leaseDuration <= times.renewDeadline ? [invalid("leaderElection.leaseDuration", formatDurationNs(times.renewDeadline), "must be greater than `RenewDeadline`")] : []),
  ];
}

function validatePercentage(path: string, value: number | undefined): FieldError[] {
  return value !== undefined && (value < 0 || value > 100) ? [invalid(path, value, "not in valid range [0-100]")] : [];
}

function validateProfile(path: string, profile: ProfileConfig, configuration: SchedulerConfiguration): FieldError[] {
  const { schedulerName, percentageOfNodesToScore, plugins, pluginConfig } = profile;
  const seen = new Set<string>();
  return [
    ...(schedulerName === "" ? [required(`${path}.schedulerName`)] : []),
    ...validatePercentage(`${path}.percentageOfNodesToScore`, percentageOfNodesToScore),
    ...EXTENSION_POINTS.flatMap((point) => (plugins[point]?.enabled ?? []).flatMap(({ name }, i) => wasRemoved(`${path}.plugins.${point}.enabled[${i}]`, name))),
    ...pluginConfig.flatMap(({ name }, i) => {
      const at = `${path}.pluginConfig[${i}]`;
      const again = seen.has(name) ? [duplicate(at, name)] : [];
      seen.add(name);
      if (REMOVED.has(name)) return [...again, ...wasRemoved(at, name)];
      const validate = ARGS[name as keyof PluginArgs] as ((at: string, args: unknown, configuration: Pick<SchedulerConfiguration, "scoresStorage">) => FieldError[]) | undefined;
      return [...again, ...(validate?.(`${at}.args`, argsOf(profile, name as keyof PluginArgs), configuration) ?? [])];
    }),
  ];
}

function wasRemoved(path: string, name: string): FieldError[] {
  return REMOVED.has(name) ? [invalid(path, name, `was invalid in version "v1" (KubeSchedulerConfiguration is version "${API_VERSION}")`)] : [];
}

/** All profiles share one queue. */
function validateQueueSort(profiles: readonly ProfileConfig[]): FieldError[] {
  const first = profiles[0]?.plugins.queueSort;
  const enabled = first?.enabled?.length ?? 0;
  return [
    ...(enabled > 1 ? [invalid("profiles[0].plugins.queueSort.Enabled", enabled, "only one queue sort plugin can be enabled")] : []),
    ...profiles.flatMap(({ plugins: { queueSort } }, i) => (Bun.deepEquals(first ?? {}, queueSort ?? {}) ? [] : [invalid(`profiles[${i}].plugins.queueSort`, inGo(queueSort), "must be the same for all profiles")])),
  ];
}

/** As upstream prints it. */
function inGo({ enabled, disabled }: PluginSet = {}): unknown {
  const named = (refs: PluginSet["enabled"]): unknown => refs?.map(({ name, weight = 0 }) => ({ Name: name, Weight: weight })) ?? null;
  return { Enabled: named(enabled), Disabled: named(disabled) };
}

const ARGS: { readonly [N in keyof PluginArgs]: (path: string, args: PluginArgs[N], configuration: Pick<SchedulerConfiguration, "scoresStorage">) => FieldError[] } = {
  DefaultPreemption(path, { minCandidateNodesPercentage: percentage, minCandidateNodesAbsolute: absolute }) {
    const [percentagePath, absolutePath] = [`${path}.minCandidateNodesPercentage`, `${path}.minCandidateNodesAbsolute`];
    return [
      ...(percentage < 0 || percentage > 100 ? [invalid(percentagePath, percentage, "not in valid range [0, 100]")] : []),
      ...(absolute < 0 ? [invalid(absolutePath, absolute, "not in valid range [0, inf)")] : []),
      ...(percentage === 0 && absolute === 0 ? [
        invalid(percentagePath, percentage, "cannot be zero at the same time as minCandidateNodesAbsolute"),
        invalid(absolutePath, absolute, "cannot be zero at the same time as minCandidateNodesPercentage"),
      ] : []),
    ];
  },
  InterPodAffinity: (path, { hardPodAffinityWeight: weight }) => (weight < 0 || weight > 100 ? [invalid(`${path}.hardPodAffinityWeight`, weight, "not in valid range [0, 100]")] : []),
  NodeAffinity(path, { addedAffinity }) {
    const terms = addedAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
    const preferred = addedAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
    return [
      ...terms.flatMap((term, i) => validateTerm(`${path}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[${i}]`, term)),
      ...preferred.flatMap(({ weight, preference }, i) => (!weight ? [] : validateTerm(`${path}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[${i}]`, preference))), // one that weighs nothing is never looked at
    ];
  },
  NodeResourcesBalancedAllocation(path, { resources }) {
    return resources.flatMap(({ name, weight }, i) => [
      ...(resources.findIndex((one) => one.name === name) < i ? [duplicate(`${path}.resources[${i}].name`, name)] : []),
      ...(weight === 1 ? [] : [invalid(`${path}.resources[${i}].weight`, weight, "must be 1")]),
    ]);
  },
  NodeResourcesFit: () => [], // validateFit, when the plugin is made
  PodTopologySpread(path, { defaultConstraints, defaultingType }) {
    const [type, list] = [`${path}.defaultingType`, `${path}.defaultConstraints`];
    return [
      ...(defaultingType !== "System" && defaultingType !== "List" ? [notSupported(type, defaultingType, ["System", "List"])]
        : defaultingType === "System" && defaultConstraints.length > 0 ? [invalid(type, defaultingType, "when .defaultConstraints are not empty")] : []),
      ...defaultConstraints.flatMap(({ maxSkew = 0, topologyKey = "", whenUnsatisfiable, labelSelector }, i) => [
        ...(maxSkew <= 0 ? [invalid(`${list}[${i}].maxSkew`, maxSkew, "not in valid range (0, inf)")] : []),
        ...(topologyKey === "" ? [required(`${list}[${i}].topologyKey`, "can not be empty")] : named(`${list}[${i}].topologyKey`, topologyKey)),
        ...(!whenUnsatisfiable ? [required(`${list}[${i}].whenUnsatisfiable`, "can not be empty")] : ACTIONS.includes(whenUnsatisfiable) ? [] : [notSupported(`${list}[${i}].whenUnsatisfiable`, whenUnsatisfiable, ACTIONS)]),
        ...(labelSelector ? [forbidden(`${list}[${i}].labelSelector`, "constraint must not define a selector, as they deduced for each pod")] : []),
        ...(defaultConstraints.findIndex((one) => one.topologyKey === topologyKey && one.whenUnsatisfiable === whenUnsatisfiable) < i ? [duplicate(`${list}[${i}]`, `{${topologyKey}, ${whenUnsatisfiable}}`)] : []),
      ]),
    ];
  },
  VolumeBinding: (path, { bindTimeoutSeconds, shape }, { scoresStorage }) => [
    ...(bindTimeoutSeconds < 0 ? [invalid(`${path}.bindTimeoutSeconds`, bindTimeoutSeconds, "invalid BindTimeoutSeconds, should not be a negative value")] : []),
    ...(scoresStorage ? validateShape(`${path}.shape`, shape ?? []) : shape ? [invalid(
      `${path}.shape`, shape.map(({ utilization, score }) => ({ Utilization: utilization, Score: score })),
      "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring",
    )] : []),
  ],
  DynamicResources: (path, { filterTimeout, bindingTimeout }) => [
    ...(parseDurationMs(filterTimeout) < 0 ? [invalid(`${path}.filterTimeout`, formatDurationNs(parseDurationNs(filterTimeout)), "must be zero or positive")] : []),
    ...(parseDurationMs(bindingTimeout) < 1000 ? [invalid(`${path}.bindingTimeout`, formatDurationNs(parseDurationNs(bindingTimeout)), "must be at least 1 second")] : []),
  ],
};

/** What the plugin finds wrong with its arguments. Source: noderesources/fit.go NewFit */
export function validateFit({ ignoredResources, ignoredResourceGroups, scoringStrategy: { type, resources, requestedToCapacityRatio } }: PluginArgs["NodeResourcesFit"]): FieldError[] {
  const strategy = "scoringStrategy";
  return [
    ...ignoredResources.flatMap((name, i) => named(`ignoredResources[${i}]`, name)),
    ...ignoredResourceGroups.flatMap((group, i) => [
      ...(group.includes("/") ? [invalid(`ignoredResourceGroups[${i}]`, group, "resource group name can't contain '/'")] : []),
      ...named(`ignoredResourceGroups[${i}]`, group),
    ]),
    ...(STRATEGIES.includes(type) ? [] : [notSupported(`${strategy}.type`, type, STRATEGIES)]),
    ...resources.flatMap(({ name, weight = 1 }, i) => (weight <= 0 || weight > 100 ? [invalid(`${strategy}.resources[${i}].weight`, weight, `resource weight of ${name} not in valid range (0, 100]`)] : [])),
    ...(type === "RequestedToCapacityRatio"
      ? requestedToCapacityRatio ? validateShape(`${strategy}.requestedToCapacityRatio.shape`, requestedToCapacityRatio.shape ?? []) : [required(`${strategy}.requestedToCapacityRatio`, "must be specified when type is RequestedToCapacityRatio")]
      : requestedToCapacityRatio ? [forbidden(`${strategy}.requestedToCapacityRatio`, "must be nil when type is not RequestedToCapacityRatio")] : []),
  ];
}

const STRATEGIES: readonly string[] = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];
const ACTIONS: readonly string[] = ["DoNotSchedule", "ScheduleAnyway"];
const OPERATORS: readonly string[] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];

function named(path: string, name: string): FieldError[] {
  return qualifiedName(name).map((problem) => invalid(path, name, problem));
}

function validateTerm(path: string, { matchExpressions = [], matchFields = [] }: NodeSelectorTerm): FieldError[] {
  return [
    ...matchExpressions.flatMap(({ key, operator, values }, i) => {
      const at = `${path}.matchExpressions[${i}]`;
      if (!OPERATORS.includes(operator)) return [notSupported(`${at}.operator`, operator, OPERATORS)];
      return [...named(`${at}.key`, key), ...validateValues(`${at}.values`, operator, values), ...(values ?? []).flatMap((value, j) => labelValue(value).map((problem) => invalid(`${at}.values[${j}][${key}]`, value, problem)))];
    }),
    ...matchFields.flatMap(({ operator, values = [] }, i) => {
      const at = `${path}.matchFields[${i}]`;
      if (operator !== "In" && operator !== "NotIn") return [notSupported(`${at}.operator`, operator, ["In", "NotIn"])];
      return values.length === 1 ? [] : [invalid(`${at}.values`, values, "must have one element")];
    }),
  ];
}

/** As many as the operator takes. Source: apimachinery labels/selector.go NewRequirement */
function validateValues(path: string, operator: string, values: readonly string[] | undefined): FieldError[] {
  const wrong = (detail: string): FieldError => invalid(path, values ?? null, detail);
  const count = values?.length ?? 0;
  switch (operator) {
    case "In": case "NotIn": return count === 0 ? [wrong("for 'in', 'notin' operators, values set can't be empty")] : [];
    case "Exists": case "DoesNotExist": return count > 0 ? [wrong("values set must be empty for exists and does not exist")] : [];
    default: return [
      ...(count === 1 ? [] : [wrong("for 'Gt', 'Lt' operators, exactly one value is required")]),
      ...(values ?? []).flatMap((value, i) => (goInteger(value) !== undefined ? [] : [invalid(`${path}[${i}]`, value, "for 'Gt', 'Lt' operators, the value must be an integer")])),
    ];
  }
}

function validateShape(path: string, shape: readonly ShapePoint[]): FieldError[] {
  if (shape.length === 0) return [required(path, "at least one point must be specified")];
  const unsorted = shape.findIndex(({ utilization }, i) => i > 0 && shape[i - 1]!.utilization >= utilization);
  return [
    ...(unsorted > 0 ? [invalid(`${path}[${unsorted}].utilization`, shape[unsorted]!.utilization, "values must be sorted in increasing order")] : []),
    ...shape.flatMap(({ utilization, score }, i) => [
      ...(utilization < 0 || utilization > 100 ? [invalid(`${path}[${i}].utilization`, utilization, "not in valid range [0, 100]")] : []),
      ...(score < 0 || score > 10 ? [invalid(`${path}[${i}].score`, score, "not in valid range [0, 10]")] : []),
    ]),
  ];
}

function validateExtenders(extenders: readonly ExtenderConfig[]): FieldError[] {
  const managed = new Set<string>();
  const binders = extenders.filter(({ bindVerb }) => bindVerb).length;
  return [
    ...extenders.flatMap(({ prioritizeVerb, weight = 0, managedResources = [] }, i) => [
      ...(prioritizeVerb && weight <= 0 ? [invalid(`extenders[${i}].weight`, weight, "must have a positive weight applied to it")] : []),
      ...managedResources.flatMap(({ name }, j) => {
        const path = `extenders[${i}].managedResources[${j}].name`;
        const problems = named(path, name);
        const again = managed.has(name) ? [invalid(path, name, "duplicate extender managed resource name")] : [];
        managed.add(name);
        return [...(problems.length === 0 && !isExtendedResource(name) ? [invalid(path, name, "is an invalid extended resource name")] : problems), ...again];
      }),
    ]),
    ...(binders > 1 ? [invalid("extenders", `found ${binders} extenders implementing bind`, "only one extender can implement bind")] : []),
  ];
}
