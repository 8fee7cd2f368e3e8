/**
 * matchConditions: expressions in CEL that must all hold before a webhook is asked.
 *
 * One that is false settles it, whatever has become of the others; an error counts by the webhook's failurePolicy.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go
 */
import type { AdmissionReview } from "../../api/gen/admission.v1.ts";
import type { MatchCondition } from "../../api/gen/admissionregistration.v1.ts";
import { forbidden } from "../../api/meta/status-error.ts";
import type { AdmissionRequest } from "../plugin.ts";
import { joinErrors } from "../refuse.ts";
import type { Webhook } from "./hooks.ts";

/** What the expressions speak of: object, oldObject and request are the review's; `authorizer` asks about the user. */
export interface ConditionInput {
  readonly review: NonNullable<AdmissionReview["request"]>;
  readonly request: AdmissionRequest;
}

/** The value of one condition. Throws an Error that says why it has none. */
export type EvaluateCondition = (condition: MatchCondition, input: ConditionInput) => Promise<boolean> | boolean;

/** For a server that has no CEL: the webhook's failurePolicy decides. */
export const noConditions: EvaluateCondition = ({ name }) => { throw new Error(`match condition ${JSON.stringify(name)} could not be evaluated: this server has no CEL`); };

/** Throws 403. */
export async function conditionsHold({ matchConditions = [], failurePolicy }: Webhook, input: ConditionInput, evaluate: EvaluateCondition): Promise<boolean> {
  const errors: string[] = [];
  for (const condition of matchConditions) {
    try {
      if (!(await evaluate(condition, input))) return false;
    } catch (error) {
      errors.push((error as Error).message);
    }
  }
  if (errors.length === 0) return true;
  if (failurePolicy === "Ignore") return false;
  const { group, resource, name } = input.request;
  throw forbidden({ group, resource }, name, joinErrors(errors));
}
