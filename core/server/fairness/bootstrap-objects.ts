/**
 * The FlowSchemas and PriorityLevelConfigurations a server is born with: two of each that it cannot do without, and suggestions.
 *
 * Source: kubernetes v1.36 apiserver/pkg/apis/flowcontrol/bootstrap/default.go
 */
import type { FlowSchema, FlowSchemaSpec, PolicyRulesWithSubjects, PriorityLevelConfiguration, PriorityLevelConfigurationSpec, ResourcePolicyRule, Subject } from "../../api/gen/flowcontrol.v1.ts";
import { mandatoryFlowSchema, mandatoryPriorityLevel } from "../../registry/flowcontrol/mandatory.ts";

export const AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec";
const API_VERSION = "flowcontrol.apiserver.k8s.io/v1";
const QUEUE_LENGTH = 50;

function schema(name: string, spec: FlowSchemaSpec): FlowSchema {
  return { apiVersion: API_VERSION, kind: "FlowSchema", metadata: { name, annotations: { [AUTO_UPDATE]: "true" } }, spec } as unknown as FlowSchema;
}

function level(name: string, spec: PriorityLevelConfigurationSpec): PriorityLevelConfiguration {
  return { apiVersion: API_VERSION, kind: "PriorityLevelConfiguration", metadata: { name, annotations: { [AUTO_UPDATE]: "true" } }, spec } as unknown as PriorityLevelConfiguration;
}

function queued(name: string, nominalConcurrencyShares: number, lendablePercent: number, queues: number, handSize: number): PriorityLevelConfiguration {
  return level(name, { type: "Limited", limited: { nominalConcurrencyShares, lendablePercent, limitResponse: { type: "Queue", queuing: { queues, handSize, queueLengthLimit: QUEUE_LENGTH } } } });
}

export const MANDATORY_LEVELS: readonly PriorityLevelConfiguration[] = ["exempt", "catch-all"].map((name) => level(name, mandatoryPriorityLevel(name)!));
export const MANDATORY_SCHEMAS: readonly FlowSchema[] = ["exempt", "catch-all"].map((name) => schema(name, mandatoryFlowSchema(name)!));

export const SUGGESTED_LEVELS: readonly PriorityLevelConfiguration[] = [
  queued("system", 30, 33, 64, 6), queued("node-high", 40, 25, 64, 6), queued("leader-election", 10, 0, 16, 4), queued("workload-high", 40, 50, 128, 6),
  queued("workload-low", 100, 90, 128, 6), queued("global-default", 20, 50, 128, 6),
];

function groups(...names: readonly string[]): Subject[] { return names.map((name) => ({ kind: "Group", group: { name } })); }
function users(...names: readonly string[]): Subject[] { return names.map((name) => ({ kind: "User", user: { name } })); }

const SYSTEM_ACCOUNTS: Subject = { kind: "ServiceAccount", serviceAccount: { name: "*", namespace: "kube-system" } };
const CONTROLLERS = "system:kube-controller-manager";
const SCHEDULER = "system:kube-scheduler";

function everything(subjects: readonly Subject[]): PolicyRulesWithSubjects {
  return {
    subjects: [...subjects],
    resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"] }],
    nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
  };
}

function suggested(name: string, levelName: string, matchingPrecedence: number, method: "ByUser" | "ByNamespace" | undefined, rule: PolicyRulesWithSubjects): FlowSchema {
  return schema(name, { priorityLevelConfiguration: { name: levelName }, matchingPrecedence, ...(method ? { distinguisherMethod: { type: method } } : {}), rules: [rule] });
}

const LEASES: ResourcePolicyRule = { verbs: ["*"], apiGroups: ["coordination.k8s.io"], resources: ["leases"], namespaces: ["*"] };

export const SUGGESTED_SCHEMAS: readonly FlowSchema[] = [
  suggested("system-nodes", "system", 500, "ByUser", everything(groups("system:nodes"))),
  suggested("system-node-high", "node-high", 400, "ByUser", {
    subjects: groups("system:nodes"),
    resourceRules: [{ verbs: ["*"], apiGroups: [""], resources: ["nodes", "nodes/status"], clusterScope: true, namespaces: ["*"] }, LEASES],
  }),
  suggested("probes", "exempt", 2, undefined, { subjects: groups("system:unauthenticated", "system:authenticated"), nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["/healthz", "/readyz", "/livez"] }] }),
  suggested("system-leader-election", "leader-election", 100, "ByUser", { subjects: [...users(CONTROLLERS, SCHEDULER), SYSTEM_ACCOUNTS], resourceRules: [{ ...LEASES, verbs: ["get", "create", "update"] }] }),
  suggested("kube-controller-manager", "workload-high", 800, "ByNamespace", everything(users(CONTROLLERS))),
  suggested("kube-scheduler", "workload-high", 800, "ByNamespace", everything(users(SCHEDULER))),
  suggested("kube-system-service-accounts", "workload-high", 900, "ByNamespace", everything([SYSTEM_ACCOUNTS])),
  suggested("service-accounts", "workload-low", 9000, "ByUser", everything(groups("system:serviceaccounts"))),
  suggested("global-default", "global-default", 9900, "ByUser", everything(groups("system:unauthenticated", "system:authenticated"))),
];
