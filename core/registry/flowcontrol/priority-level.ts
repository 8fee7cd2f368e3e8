/**
 * PriorityLevelConfiguration (flowcontrol.apiserver.k8s.io/v1): how many requests of a level are served at once, and what happens to the others.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/priority-level-configuration-v1/
 * Source: kubernetes v1.36 pkg/registry/flowcontrol/prioritylevelconfiguration/strategy.go, pkg/apis/flowcontrol/{v1/defaults,validation/validation}.go
 */
import { internalForm } from "../../api/schema/internal-form.ts";
import { child, type FieldError, forbidden, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { LimitResponse, PriorityLevelConfiguration, PriorityLevelConfigurationSpec, QueuingConfiguration } from "../../api/gen/flowcontrol.v1.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { conditionTypes } from "./flow-schema.ts";
import { mandatoryPriorityLevel } from "./mandatory.ts";

const SHARES = 30;
const QUEUES = 64;
const QUEUES_MAX = 10_000_000;
const HAND_SIZE = 8;
const QUEUE_LENGTH = 50;
const ENTROPY_BITS_MAX = 60;
const ZERO_SHARES_ANNOTATION = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

export const priorityLevelConfigurations = defineResource<PriorityLevelConfiguration>({
  group: "flowcontrol.apiserver.k8s.io", version: "v1", kind: "PriorityLevelConfiguration", plural: "prioritylevelconfigurations",
  defaults({ spec: { exempt, limited } }) {
    if (exempt) {
      exempt.nominalConcurrencyShares ??= 0;
      exempt.lendablePercent ??= 0;
    }
    if (!limited) return;
    limited.nominalConcurrencyShares ??= SHARES;
    limited.lendablePercent ??= 0;
    const queuing = limited.limitResponse?.queuing;
    if (!queuing) return;
    queuing.queues ||= QUEUES;
    queuing.handSize ||= HAND_SIZE;
    queuing.queueLengthLimit ||= QUEUE_LENGTH;
  },
  *validate({ metadata: { name, annotations }, spec, status }) {
    if (annotations?.[ZERO_SHARES_ANNOTATION] !== undefined) yield forbidden("metadata.annotations", `annotation '${ZERO_SHARES_ANNOTATION}' is forbidden`);
    yield* validateSpec("spec", spec, name);
    const fixed = mandatoryPriorityLevel(name);
    if (fixed && name === "exempt" && !semanticEqual({ ...spec, exempt: fixed.exempt }, fixed)) yield invalid("spec", shown(spec), `spec of '${name}' except the 'spec.exempt' field must equal the fixed value`);
    if (fixed && name !== "exempt" && !semanticEqual(spec, fixed)) yield invalid("spec", shown(spec), `spec of '${name}' must equal the fixed value`);
    yield* conditionTypes("status.conditions", status?.conditions);
  },
  subresources: { status: statusPart<PriorityLevelConfiguration>({ keepsMetadata: "all", validate: ({ status }) => conditionTypes("status.conditions", status?.conditions) }) },
});

function shown(spec: Readonly<PriorityLevelConfigurationSpec>): object { return internalForm("io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec", spec); }

function* validateSpec(path: string, { type, limited, exempt }: Readonly<PriorityLevelConfigurationSpec>, name: string): Iterable<FieldError> {
  if ((name === "exempt") !== (type === "Exempt")) yield invalid(child(path, "type"), type ?? "", "must be 'Exempt' if and only if `name` is 'exempt'");
  if (type === "Exempt") {
    if (limited) yield forbidden(child(path, "limited"), "must be nil if the type is not Limited");
    if (exempt) yield* shares(child(path, "exempt"), exempt);
  } else if (type === "Limited") {
    if (exempt) yield forbidden(child(path, "exempt"), "must be nil if the type is Limited");
    if (limited) yield* validateLimited(child(path, "limited"), limited);
    else yield required(child(path, "limited"), "must not be empty when type is Limited");
  } else yield notSupported(child(path, "type"), type ?? "", ["Exempt", "Limited"]);
}

interface Shares { readonly nominalConcurrencyShares?: number | undefined; readonly lendablePercent?: number | undefined }

function* shares(path: string, given: Shares): Iterable<FieldError> {
  yield* sharesCount(path, given);
  yield* lendable(path, given);
}

function* sharesCount(path: string, { nominalConcurrencyShares: count = 0 }: Shares): Iterable<FieldError> {
  if (count < 0) yield invalid(child(path, "nominalConcurrencyShares"), count, "must be a non-negative integer");
}

function* lendable(path: string, { lendablePercent: percent = 0 }: Shares): Iterable<FieldError> {
  if (percent < 0 || percent > 100) yield invalid(child(path, "lendablePercent"), percent, "must be between 0 and 100, inclusive");
}

function* validateLimited(path: string, limited: NonNullable<PriorityLevelConfigurationSpec["limited"]>): Iterable<FieldError> {
  yield* sharesCount(path, limited);
  yield* validateResponse(child(path, "limitResponse"), limited.limitResponse);
  yield* lendable(path, limited);
  if ((limited.borrowingLimitPercent ?? 0) < 0) yield invalid(child(path, "borrowingLimitPercent"), limited.borrowingLimitPercent, "if specified, must be a non-negative integer");
}

function* validateResponse(path: string, response: LimitResponse | undefined): Iterable<FieldError> {
  const { type = "", queuing } = response ?? {};
  if (type === "Reject") {
    if (queuing) yield forbidden(child(path, "queuing"), "must be nil if limited.limitResponse.type is not Limited");
  } else if (type === "Queue") {
    if (queuing) yield* validateQueuing(child(path, "queuing"), queuing);
    else yield required(child(path, "queuing"), "must not be empty if limited.limitResponse.type is Limited");
  } else yield notSupported(child(path, "type"), type, ["Queue", "Reject"]);
}

function* validateQueuing(path: string, { queues = 0, handSize = 0, queueLengthLimit = 0 }: QueuingConfiguration): Iterable<FieldError> {
  const at = child(path, "handSize");
  if (queueLengthLimit <= 0) yield invalid(child(path, "queueLengthLimit"), queueLengthLimit, "must be positive");
  if (queues <= 0) yield invalid(child(path, "queues"), queues, "must be positive");
  else if (queues > QUEUES_MAX) yield invalid(child(path, "queues"), queues, `must not be greater than ${QUEUES_MAX}`);
  if (handSize <= 0) yield invalid(at, handSize, "must be positive");
  else if (handSize > queues) yield invalid(at, handSize, `should not be greater than queues (${queues})`);
  else if (Math.ceil(Math.log2(queues) * handSize) > ENTROPY_BITS_MAX)
    yield invalid(at, handSize, `required entropy bits of deckSize ${queues} and handSize ${handSize} should not be greater than ${ENTROPY_BITS_MAX}`);
}
