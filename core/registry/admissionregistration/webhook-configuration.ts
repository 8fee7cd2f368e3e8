/**
 * MutatingWebhookConfiguration and ValidatingWebhookConfiguration (admissionregistration.k8s.io/v1): who else is asked before something is written.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/validating-webhook-configuration-v1/
 * Source: kubernetes v1.36 pkg/registry/admissionregistration/{mutating,validating}webhookconfiguration/strategy.go, pkg/apis/admissionregistration/{v1/defaults,validation/validation}.go
 */
import { child, duplicate, type FieldError, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { MutatingWebhook, MutatingWebhookConfiguration, ValidatingWebhookConfiguration } from "../../api/gen/admissionregistration.v1.ts";
import { validateLabelSelector } from "../../api/meta/label-selector.ts";
import { dns1035Label, dns1123Subdomain } from "../../api/meta/names.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { oneOfOptional } from "../core/checks/values.ts";
import { defineResource, type Resource } from "../generic/resource.ts";
import { defaultRule, FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES, validateMatchConditions, validateRule } from "./rules.ts";
import { staticNameWarnings } from "./static-names.ts";
import { webhookService, webhookUrl } from "./webhook-client.ts";
import { repeats } from "../../api/meta/linear.ts";

type Configuration = MutatingWebhookConfiguration | ValidatingWebhookConfiguration;
/** One that only validates has no reinvocationPolicy. */
type Webhook = MutatingWebhook;

const REVIEW_VERSIONS = ["v1", "v1beta1"];
const SIDE_EFFECTS = ["None", "NoneOnDryRun", "Some", "Unknown"];
const NO_SIDE_EFFECTS = ["None", "NoneOnDryRun"];
const TIMEOUT_SECONDS = 10;
const TIMEOUT_SECONDS_MAX = 30;
const SERVICE_PORT = 443;

export const mutatingWebhookConfigurations: Resource<MutatingWebhookConfiguration> = configuration<MutatingWebhookConfiguration>("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", true);
export const validatingWebhookConfigurations: Resource<ValidatingWebhookConfiguration> = configuration<ValidatingWebhookConfiguration>("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false);

function configuration<T extends Configuration>(kind: string, plural: string, mutates: boolean): Resource<T> {
  return defineResource<T>({
    anyFinalizer: true,
    group: "admissionregistration.k8s.io", version: "v1", kind, plural,
    unconditionalUpdate: false, tellsEmpty: true,

    defaults({ webhooks }) {
      for (const hook of (webhooks ?? []) as Webhook[]) {
        hook.failurePolicy ??= "Fail";
        hook.matchPolicy ??= "Equivalent";
        hook.namespaceSelector ??= {};
        hook.objectSelector ??= {};
        hook.timeoutSeconds ??= TIMEOUT_SECONDS;
        if (mutates) hook.reinvocationPolicy ??= "Never";
        for (const rule of hook.rules ?? []) defaultRule(rule);
        if (hook.clientConfig?.service) hook.clientConfig.service.port ??= SERVICE_PORT;
      }
    },
    *validate({ webhooks }, old) {
      const hooks = (webhooks ?? []) as readonly Webhook[];
      const rules = rulesFor(hooks, old?.webhooks as readonly Webhook[] | undefined);
      for (const [i, hook] of hooks.entries()) {
        const at = index("webhooks", i);
        yield* validateWebhook(at, hook, rules);
        yield* validateReviewVersions(child(at, "admissionReviewVersions"), hook.admissionReviewVersions ?? [], rules.needsKnownVersion);
        if (rules.needsUniqueNames && hook.name && hooks.findIndex(({ name }) => name === hook.name) < i) yield duplicate(child(at, "name"), hook.name);
      }
    },
    warnings: ({ metadata }) => staticNameWarnings(metadata.name),
  });
}

/** What was stored already is let pass. */
interface Rules {
  readonly ignoreConditions: boolean;
  readonly sideEffects: readonly string[];
  readonly needsKnownVersion: boolean;
  readonly needsUniqueNames: boolean;
  readonly allowInvalidValues: boolean;
}

function rulesFor(hooks: readonly Webhook[], old: readonly Webhook[] | undefined): Rules {
  if (!old) return { ignoreConditions: false, sideEffects: NO_SIDE_EFFECTS, needsKnownVersion: true, needsUniqueNames: true, allowInvalidValues: false };
  return {
    ignoreConditions: hooks.length === old.length && hooks.every(({ matchConditions }, i) => semanticEqual(matchConditions, old[i]!.matchConditions)),
    sideEffects: old.every(({ sideEffects }) => NO_SIDE_EFFECTS.includes(sideEffects ?? "")) ? NO_SIDE_EFFECTS : SIDE_EFFECTS,
    needsKnownVersion: old.every(({ admissionReviewVersions: versions }) => !versions?.length || versions.some((version) => REVIEW_VERSIONS.includes(version))),
    needsUniqueNames: new Set(old.map(({ name }) => name)).size === old.length,
    allowInvalidValues: old.some(({ namespaceSelector, objectSelector }) => [namespaceSelector, objectSelector].some((selector) => validateLabelSelector(selector, "").length > 0)),
  };
}

function* validateWebhook(path: string, hook: Webhook, { ignoreConditions, sideEffects, allowInvalidValues }: Rules): Iterable<FieldError> {
  const at = (name: string): string => child(path, name);
  yield* validateName(at("name"), hook.name ?? "");
  for (const [i, rule] of (hook.rules ?? []).entries()) yield* validateRule(index(at("rules"), i), rule);
  yield* oneOfOptional(at("failurePolicy"), hook.failurePolicy, FAILURE_POLICIES);
  yield* oneOfOptional(at("matchPolicy"), hook.matchPolicy, MATCH_POLICIES);
  if (hook.sideEffects == null) yield required(at("sideEffects"), `must specify one of ${sideEffects.join(", ")}`);
  else if (!sideEffects.includes(hook.sideEffects)) yield notSupported(at("sideEffects"), hook.sideEffects, sideEffects);
  const timeout = hook.timeoutSeconds;
  if (timeout !== undefined && (timeout > TIMEOUT_SECONDS_MAX || timeout < 1)) yield invalid(at("timeoutSeconds"), timeout, "the timeout value must be between 1 and 30 seconds");
  for (const name of ["namespaceSelector", "objectSelector"] as const) yield* validateLabelSelector(hook[name], at(name), { allowInvalidValues });
  yield* oneOfOptional(at("reinvocationPolicy"), hook.reinvocationPolicy, REINVOCATION_POLICIES);
  const { url, service } = hook.clientConfig ?? {};
  if ((url === undefined) === (service === undefined)) yield required(at("clientConfig"), "exactly one of url or service is required");
  else if (url !== undefined) yield* webhookUrl(child(path, "clientConfig", "url"), url);
  else yield* webhookService(child(path, "clientConfig", "service"), service!);
  if (!ignoreConditions) yield* validateMatchConditions(at("matchConditions"), hook.matchConditions);
}

function* validateName(path: string, name: string): Iterable<FieldError> {
  const wrong = dns1123Subdomain(name);
  if (name === "") yield required(path);
  else if (wrong.length > 0) yield invalid(path, name, wrong.join(","));
  else if (name.split(".").length < 3) yield invalid(path, name, "should be a domain with at least three segments separated by dots");
}

function* validateReviewVersions(path: string, versions: readonly string[], needsKnown: boolean): Iterable<FieldError> {
  if (versions.length === 0) { yield required(path, `must specify one of ${REVIEW_VERSIONS.join(", ")}`); return; }
  const cameBefore = repeats<string>();
  for (const [i, version] of versions.entries()) {
    if (cameBefore(version)) yield invalid(index(path, i), version, "duplicate version");
    else for (const problem of dns1035Label(version)) yield invalid(index(path, i), version, problem);
  }
  if (needsKnown && !versions.some((version) => REVIEW_VERSIONS.includes(version))) yield invalid(path, versions, `must include at least one of ${REVIEW_VERSIONS.join(", ")}`);
}
