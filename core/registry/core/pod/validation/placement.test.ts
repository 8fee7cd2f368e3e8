/** What a pod may say of where it wants to be, and what of that may change while it is gated. */
import { expect, test } from "vitest";
import type { Pod } from "../../../../api/gen/core.v1.ts";
import { formatFieldError } from "../../../../api/meta/field-error.ts";
import { keepFieldsOf } from "../../../generic/switched-on.ts";
import { pods } from "../pod.ts";

function pod(spec: object): Pod {
  const made = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "default", uid: "u", resourceVersion: "1", creationTimestamp: "", labels: { app: "web", rev: "7" } }, spec: { containers: [{ name: "c", image: "i" }], ...spec } } as Pod;
  pods.defaults!(made);
  return structuredClone(made);
}
const errors = (object: Pod, old?: Pod): string[] => [...pods.validate!(object, old), ...(old ? pods.validateUpdate!(object, old) : [])].map(formatFieldError);

const AT = "spec.topologySpreadConstraints";
const spread = (...more: object[]) => ({ topologySpreadConstraints: more.map((one) => ({ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", labelSelector: { matchLabels: { app: "web" } }, ...one })) });
const preferred = (weight: number) => ({ affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight, preference: { matchExpressions: [{ key: "a", operator: "Exists" }] } }] } } });
const required = (...nodeSelectorTerms: object[]) => ({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } });
const term = (...matchExpressions: object[]) => ({ matchExpressions });
const TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";

test.each<[what: string, spec: object, problems: string[]]>([
  ["two constraints of one kind", spread({}, { maxSkew: 2 }), [`${AT}[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"`]],
  ["two of different kinds", spread({}, { whenUnsatisfiable: "ScheduleAnyway" }, { topologyKey: "rack" }), []],
  ["minDomains", spread({ minDomains: 2 }), []],
  ["minDomains of none", spread({ minDomains: 0 }), [`${AT}[0].minDomains: Invalid value: 0: must be greater than zero`]],
  ["minDomains of a wish", spread({ minDomains: 2, whenUnsatisfiable: "ScheduleAnyway" }), [`${AT}[0].minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway`]],
  ["policies", spread({ nodeAffinityPolicy: "Sometimes", nodeTaintsPolicy: "Honor" }), [`${AT}[0].nodeAffinityPolicy: Unsupported value: "Sometimes": supported values: "Honor", "Ignore"`]],
  ["matchLabelKeys without a selector", spread({ labelSelector: undefined, matchLabelKeys: ["rev"] }), [`${AT}[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set`]],
  ["the lightest and the heaviest preference", preferred(1), []],
  ["one that weighs nothing", preferred(0), ["spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100"]],
  ["one that weighs too much", preferred(101), ["spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100"]],
  ["an unknown operator", required(term({ key: "a", operator: "Like", values: ["b"] })), [`${TERMS}[0].matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator`]],
  ["In of nothing", required(term({ key: "a", operator: "In", values: [] })), [`${TERMS}[0].matchExpressions[0].values: Required value: must be specified when \`operator\` is 'In' or 'NotIn'`]],
  ["Exists of something", required(term({ key: "a", operator: "Exists", values: ["b"] })), [`${TERMS}[0].matchExpressions[0].values: Forbidden: may not be specified when \`operator\` is 'Exists' or 'DoesNotExist'`]],
  ["Gt of two", required(term({ key: "a", operator: "Gt", values: ["1", "2"] })), [`${TERMS}[0].matchExpressions[0].values: Required value: must be specified single value when \`operator\` is 'Lt' or 'Gt'`]],
  ["a field that is none", required({ matchFields: [{ key: "spec.x", operator: "In", values: ["b"] }] }), [`${TERMS}[0].matchFields[0].key: Invalid value: "spec.x": not a valid field selector key`]],
  ["Gt in pod affinity", { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "zone", labelSelector: { matchExpressions: [{ key: "a", operator: "Gt", values: ["1"] }] } }] } } }, ['spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator']],
  ["numeric tolerations, whose gate is off", { tolerations: [{ key: "a", operator: "Gt", value: "1" }] }, ['spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"']],
  ["tolerationSeconds of another effect", { tolerations: [{ key: "a", operator: "Exists", effect: "NoSchedule", tolerationSeconds: 5 }] }, ['spec.tolerations[0].effect: Invalid value: "NoSchedule": effect must be \'NoExecute\' when `tolerationSeconds` is set']],
])("%s", (_, spec, problems) => expect(errors(pod(spec))).toEqual(problems));

const a = { key: "a", operator: "In", values: ["1"] }, b = { key: "b", operator: "Exists" };
const gated = (spec: object): Pod => pod({ schedulingGates: [{ name: "g/h" }], ...spec });
const NO_TERMS = "no additions/deletions to non-empty NodeSelectorTerms list are allowed", ONLY_MORE = "only additions are allowed (no mutations or deletions)";

test.each<[what: string, before: object, after: object, problem: string | undefined]>([
  ["affinity where there was none", {}, required(term(a), term(b)), undefined],
  ["a requirement more", required(term(a)), required(term(a, b)), undefined],
  ["a field more", required(term(a)), required({ ...term(a), matchFields: [{ key: "metadata.name", operator: "In", values: ["n"] }] }), undefined],
  ["a requirement less", required(term(a, b)), required(term(a)), ONLY_MORE],
  ["another requirement", required(term(a)), required(term(b)), ONLY_MORE],
  ["a term more: that would be wider", required(term(a)), required(term(a), term(b)), NO_TERMS],
  ["no affinity any more", required(term(a)), {}, NO_TERMS],
  ["any preference", preferred(10), preferred(90), undefined],
  ["a label of the selector more", { nodeSelector: { x: "1" } }, { nodeSelector: { x: "1", y: "2" } }, undefined],
  ["a label less", { nodeSelector: { x: "1" } }, {}, "only additions to spec.nodeSelector are allowed (no mutations or deletions)"],
  ["a gate less", {}, { schedulingGates: [] }, undefined],
])("while it is gated: %s", (_, before, after, problem) => {
  const problems = errors(gated(after), gated(before));
  if (problem === undefined) expect(problems).toEqual([]);
  else expect(problems.join()).toContain(problem);
});

test("a pod without gates does not move", () => {
  expect(errors(pod({ nodeSelector: { x: "1" } }), pod({})).join()).toContain("spec: Forbidden: pod updates may not change fields other than");
});

test.each<[value: string, problems: string[]]>([
  ["950", []], ["0", []], ["-5", []], ["9223372036854775807", []],
  ["high", ["must be a valid decimal integer in canonical form", 'strconv.ParseInt: parsing "high": invalid syntax']], ["95.5", ["must be a valid decimal integer in canonical form", 'strconv.ParseInt: parsing "95.5": invalid syntax']],
  ["0950", ["must be a valid decimal integer in canonical form"]], ["+100", ["must be a valid decimal integer in canonical form"]], ["-", ["must be a valid decimal integer in canonical form", 'strconv.ParseInt: parsing "-": invalid syntax']],
  ["", ["must be non-empty", 'strconv.ParseInt: parsing "": invalid syntax']], ["9223372036854775808", ['strconv.ParseInt: parsing "9223372036854775808": value out of range']],
])("numeric tolerations, whose gate is on: %j", (value, problems) => {
  keepFieldsOf(new Set(["TaintTolerationComparisonOperators"]));
  try {
    for (const operator of ["Gt", "Lt"])
      expect(errors(pod({ tolerations: [{ key: "a", operator, value, effect: "NoSchedule" }] }))).toEqual(problems.map((problem) => `spec.tolerations[0].value: Invalid value: ${JSON.stringify(value)}: ${problem}`));
  } finally {
    keepFieldsOf(new Set());
  }
});
