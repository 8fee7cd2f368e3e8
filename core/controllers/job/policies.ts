/**
 * What a pod's failure means for its Job, and when enough has succeeded.
 *
 * Source: kubernetes v1.36 pkg/controller/job/{pod_failure_policy,success_policy}.go (rules and messages)
 */
import type { JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement } from "../../api/gen/batch.v1.ts";
import type { ContainerStatus, Pod } from "../../api/gen/core.v1.ts";
import { namespaceOf } from "../../api/meta/object-meta.ts";
import { Indexes } from "./indexes.ts";

export interface Verdict {
  /** The failure counts towards the backoff limit. */
  readonly counts: boolean;
  /** The whole Job fails, with this message. */
  readonly failsJob?: string | undefined;
  readonly failsIndex?: boolean | undefined;
}

interface Match { readonly action: string; readonly message: string }

/** Rules of others, which a newer server may have let in, say nothing. */
const ACTIONS: readonly string[] = ["FailJob", "FailIndex", "Ignore", "Count"];

/** The first rule that speaks of this failure. */
export function matchingRule(policy: Readonly<PodFailurePolicy> | undefined, pod: Readonly<Pod>): Match | undefined {
  for (const [i, { action, onExitCodes, onPodConditions }] of (policy?.rules ?? []).entries()) {
    const name = `${namespaceOf(pod)}/${pod.metadata.name}`;
    let message: string | undefined;
    if (!ACTIONS.includes(action)) continue;
    if (onExitCodes !== undefined) {
      const container = failedContainer(pod, onExitCodes);
      if (container !== undefined) message = `Container ${container.name} for pod ${name} failed with exit code ${container.state?.terminated?.exitCode} matching ${action} rule at index ${i}`;
    } else {
      const condition = pod.status?.conditions?.find(({ type, status }) => onPodConditions?.some((pattern) => pattern.type === type && (pattern.status ?? "True") === status));
      if (condition !== undefined) message = `Pod ${name} has condition ${condition.type} matching ${action} rule at index ${i}`;
    }
    if (message !== undefined) return { action, message };
  }
  return undefined;
}

export function judgeFailure(policy: Readonly<PodFailurePolicy> | undefined, pod: Readonly<Pod>): Verdict {
  const match = matchingRule(policy, pod);
  switch (match?.action) {
    case "Ignore": return { counts: false };
    case "FailJob": return { counts: true, failsJob: match.message };
    case "FailIndex": return { counts: true, failsIndex: true };
    default: return { counts: true };
  }
}

function failedContainer({ status }: Readonly<Pod>, { containerName, operator, values }: Readonly<PodFailurePolicyOnExitCodesRequirement>): ContainerStatus | undefined {
  return [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].find(({ name, state }) => {
    const code = state?.terminated?.exitCode ?? 0;
    if (code === 0 || (containerName !== undefined && containerName !== name)) return false;
    return (values ?? []).includes(code) ? operator === "In" : operator === "NotIn";
  });
}

/** The message of the first rule that is met. */
export function successMet({ successPolicy, completions = 0 }: Readonly<JobSpec>, succeeded: Indexes): string | undefined {
  for (const [i, { succeededIndexes, succeededCount }] of (successPolicy?.rules ?? []).entries()) {
    const met = (have: number): boolean => succeededCount !== undefined && have >= succeededCount;
    if (succeededIndexes === undefined) {
      if (met(succeeded.size)) return `Matched rules at index ${i}`;
      continue;
    }
    const required = Indexes.parse(succeededIndexes, completions);
    const have = required.overlap(succeeded);
    if (required.size > 0 && (have === required.size || met(have))) return `Matched rules at index ${i}`;
  }
  return undefined;
}
