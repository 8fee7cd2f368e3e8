/** Flow schemas and priority levels whose spec is fixed: those that are left when nothing else fits. Source: kubernetes v1.36 apiserver/pkg/apis/flowcontrol/bootstrap/default.go */
import type { FlowSchemaSpec, PolicyRulesWithSubjects, PriorityLevelConfigurationSpec } from "../../api/gen/flowcontrol.v1.ts";

function everythingOf(...groups: readonly string[]): PolicyRulesWithSubjects {
  return {
    subjects: groups.map((name) => ({ kind: "Group", group: { name } })),
    resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"] }],
    nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
  };
}

export function mandatoryFlowSchema(name: string): FlowSchemaSpec | undefined {
  if (name === "exempt") return { priorityLevelConfiguration: { name: "exempt" }, matchingPrecedence: 1, rules: [everythingOf("system:masters")] };
  if (name !== "catch-all") return undefined;
  return {
    priorityLevelConfiguration: { name: "catch-all" }, matchingPrecedence: 10_000, distinguisherMethod: { type: "ByUser" }, rules: [everythingOf("system:unauthenticated", "system:authenticated")],
  };
}

export function mandatoryPriorityLevel(name: string): PriorityLevelConfigurationSpec | undefined {
  if (name === "exempt") return { type: "Exempt", exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } };
  return name === "catch-all" ? { type: "Limited", limited: { nominalConcurrencyShares: 5, limitResponse: { type: "Reject" }, lendablePercent: 0 } } : undefined;
}
