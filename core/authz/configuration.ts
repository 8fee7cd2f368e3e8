/**
 * AuthorizationConfiguration: who is asked, and in which order. The first that allows or denies decides.
 *
 *   apiVersion: apiserver.config.k8s.io/v1
 *   kind: AuthorizationConfiguration
 *   authorizers:
 *   - {type: Node, name: node}
 *   - {type: RBAC, name: rbac}
 *   - type: Webhook
 *     name: policy
 *     webhook:
 *       timeout: 3s
 *       subjectAccessReviewVersion: v1
 *       matchConditionSubjectAccessReviewVersion: v1
 *       failurePolicy: Deny
 *       connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/webhook.yaml}
 *       matchConditions: [{expression: "has(request.resourceAttributes)"}]
 *
 * Source: kubernetes v1.36 apiserver/pkg/apis/apiserver/{types.go,v1/defaults.go,validation/validation.go}, pkg/kubeapiserver/authorizer/modes
 */
import { type Fields, fieldsOf } from "../api/codec/strict-fields.ts";
import { parseYaml } from "../api/codec/yaml.ts";
import { parseDurationNs } from "../api/meta/duration.ts";
import { duplicate, type FieldError, formatFieldErrors, invalid, notSupported, required } from "../api/meta/field-error.ts";
import { dns1123Subdomain } from "../api/meta/names.ts";
import { type MatchCondition, matchCondition } from "./match-conditions.ts";

export const AUTHORIZER_TYPES = ["AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"] as const;
export type AuthorizerType = (typeof AUTHORIZER_TYPES)[number];

export interface WebhookSettings {
  readonly authorizedMs: number;
  readonly unauthorizedMs: number;
  readonly cacheAuthorized: boolean;
  readonly cacheUnauthorized: boolean;
  readonly timeoutMs: number;
  readonly version: "v1" | "v1beta1";
  readonly failurePolicy: "NoOpinion" | "Deny";
  /** Undefined: the cluster's own API server. */
  readonly kubeconfigFile: string | undefined;
  readonly matchConditions: readonly MatchCondition[];
}

export interface AuthorizerSettings {
  readonly type: AuthorizerType;
  readonly name: string;
  readonly webhook?: WebhookSettings | undefined;
}

const VERSIONS = ["v1", "v1beta1", "v1alpha1"].map((version) => `apiserver.config.k8s.io/${version}`);
const CONDITIONS_MAX = 64;
const TIMEOUT_MS_MAX = 30_000;

/** Throws for a file that cannot be. */
export function authorizationConfiguration(text: string): readonly AuthorizerSettings[] {
  const fields = fieldsOf(parseYaml(text), { kind: "AuthorizationConfiguration", apiVersions: VERSIONS });
  const problems: FieldError[] = [];
  const authorizers = fields.objects("authorizers").map((one) => {
    const settings = { type: one.text("type") as AuthorizerType, name: one.text("name"), ...(one.has("webhook") ? { webhook: readWebhook(one.object("webhook"), problems) } : {}) };
    one.any("webhook"); // it was looked at
    one.end();
    return { path: one.path, settings };
  });
  fields.end();
  if (authorizers.length === 0) problems.push(required("authorizers", "at least one authorization mode must be defined"));
  for (const [i, { path, settings: { type, name, webhook } }] of authorizers.entries()) {
    const before = authorizers.slice(0, i).map(({ settings }) => settings);
    if ((type as string) === "") problems.push(required(`${path}.type`));
    else if (!AUTHORIZER_TYPES.includes(type)) problems.push(notSupported(`${path}.type`, type, [...AUTHORIZER_TYPES]));
    else if (type !== "Webhook" && before.some((one) => one.type === type)) problems.push(duplicate(`${path}.type`, type));
    if (name === "") problems.push(required(`${path}.name`));
    else if (before.some((one) => one.name === name)) problems.push(duplicate(`${path}.name`, name));
    else if (dns1123Subdomain(name).length > 0) problems.push(invalid(`${path}.name`, name, `authorizer name is invalid: ${dns1123Subdomain(name).join(", ")}`));
    if (type === "Webhook" && !webhook) problems.push(required(`${path}.webhook`, "required when type=Webhook"));
    if (type !== "Webhook" && webhook) problems.push(invalid(`${path}.webhook`, "non-null", "may only be specified when type=Webhook"));
  }
  if (problems.length > 0) throw new Error(formatFieldErrors(problems));
  return authorizers.map(({ settings }) => settings);
}

function readWebhook(fields: Fields, problems: FieldError[]): WebhookSettings {
  const { path } = fields;
  const duration = (name: string, standardMs: number | undefined): number => {
    const text = fields.text(name);
    if (text === "") {
      if (standardMs === undefined) problems.push(required(`${path}.${name}`));
      return standardMs ?? 0;
    }
    const ms = Number(parseDurationNs(text) / 1_000_000n);
    if (ms <= 0) problems.push(invalid(`${path}.${name}`, text, "must be > 0s"));
    return ms;
  };
  const choice = <T extends string>(name: string, choices: readonly T[]): T => {
    const text = fields.text(name);
    if (text === "") problems.push(required(`${path}.${name}`));
    else if (!choices.includes(text as T)) problems.push(notSupported(`${path}.${name}`, text, [...choices]));
    return text as T;
  };
  const timeoutMs = duration("timeout", undefined);
  if (timeoutMs > TIMEOUT_MS_MAX) problems.push(invalid(`${path}.timeout`, fields.text("timeout"), "must be > 0s and <= 30s"));
  const matchConditions = readConditions(fields, problems);
  const settings: WebhookSettings = {
    timeoutMs, authorizedMs: duration("authorizedTTL", 300_000), unauthorizedMs: duration("unauthorizedTTL", 30_000),
    cacheAuthorized: fields.boolean("cacheAuthorizedRequests") ?? true, cacheUnauthorized: fields.boolean("cacheUnauthorizedRequests") ?? true,
    version: choice("subjectAccessReviewVersion", ["v1", "v1beta1"]), failurePolicy: choice("failurePolicy", ["NoOpinion", "Deny"]),
    kubeconfigFile: readConnection(fields.object("connectionInfo"), problems), matchConditions,
  };
  fields.end();
  return settings;
}

function readConnection(fields: Fields, problems: FieldError[]): string | undefined {
  const { path } = fields;
  const [type, file] = [fields.text("type"), fields.text("kubeConfigFile")];
  fields.end();
  if (type === "") problems.push(required(`${path}.type`));
  else if (type === "InClusterConfig") {
    if (file !== "") problems.push(invalid(`${path}.kubeConfigFile`, file, "can only be set when type=KubeConfigFile"));
    return undefined;
  } else if (type !== "KubeConfigFile") problems.push(notSupported(`${path}.type`, type, ["InClusterConfig", "KubeConfigFile"]));
  else if (file === "") problems.push(required(`${path}.kubeConfigFile`));
  else if (!/^(\/|[A-Za-z]:[\\/])/.test(file)) problems.push(invalid(`${path}.kubeConfigFile`, file, "must be an absolute path"));
  return file;
}

function readConditions(fields: Fields, problems: FieldError[]): readonly MatchCondition[] {
  const { path } = fields;
  const list = fields.objects("matchConditions").map((one) => {
    const expression = one.text("expression");
    one.end();
    return expression;
  });
  const version = fields.text("matchConditionSubjectAccessReviewVersion");
  if (version === "" && list.length > 0) problems.push(required(`${path}.matchConditionSubjectAccessReviewVersion`, "required if match conditions are specified"));
  if (version !== "" && version !== "v1") problems.push(notSupported(`${path}.matchConditionSubjectAccessReviewVersion`, version, ["v1"]));
  if (list.length > CONDITIONS_MAX) problems.push({ type: "FieldValueTooMany", field: `${path}.matchConditions`, badValue: list.length, detail: `must have at most ${CONDITIONS_MAX} items` });
  return list.flatMap((expression, i) => {
    const at = `${path}.matchConditions[${i}].expression`;
    if (expression.trim() === "") problems.push(required(at));
    else if (list.indexOf(expression) < i) problems.push(duplicate(at, expression));
    else {
      const condition = matchCondition(expression);
      if (condition.problem !== undefined) problems.push(invalid(at, expression, condition.problem));
      return [condition];
    }
    return [];
  });
}
