/**
 * PodTolerationRestriction: what a namespace's pods tolerate by default, and at all, by the annotations scheduler.alpha.kubernetes.io/defaultTolerations
 * and …/tolerationsWhitelist, or by the configuration for all namespaces without them.
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/podtolerationrestriction/admission.go
 */
import type { Namespace, Pod, Toleration } from "../api/gen/core.v1.ts";
import { notFound, statusError } from "../api/meta/status-error.ts";
import { jsonKindOf } from "../api/patch/json-value.ts";
import { isBestEffort } from "../api/quota/pod-usage.ts";
import type { Lookup } from "../client/lookup.ts";
import { parseJson } from "../api/codec/json.ts";
import { fieldsOf } from "../api/codec/strict-fields.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { isResource } from "./refuse.ts";
import { isTolerated, mergeTolerations } from "./merge-tolerations.ts";

const DEFAULTS_ANNOTATION = "scheduler.alpha.kubernetes.io/defaultTolerations";
const ALLOWED_ANNOTATION = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";

interface Tolerations { readonly defaults: readonly Toleration[]; readonly allowed: readonly Toleration[] }

export function tolerationRestriction(configuration: unknown): Tolerations {
  if (configuration === undefined) return { defaults: [], allowed: [] };
  const fields = fieldsOf(configuration, { kind: "Configuration", apiVersions: ["podtolerationrestriction.admission.k8s.io/v1alpha1"] });
  const list = (name: string): Toleration[] => fields.objects(name).map((one) => {
    const seconds = one.number("tolerationSeconds");
    const toleration: Toleration = {
      key: one.text("key"), operator: (one.text("operator") || "Equal") as NonNullable<Toleration["operator"]>, value: one.text("value"), effect: one.text("effect") as NonNullable<Toleration["effect"]>,
      ...(seconds === undefined ? {} : { tolerationSeconds: seconds }),
    };
    one.end();
    return toleration;
  });
  const result = { defaults: list("default"), allowed: list("whitelist") };
  fields.end();
  return result;
}

export function podTolerationRestriction({ namespaces, restriction }: { readonly namespaces: Lookup<Namespace>; readonly restriction: Tolerations }): AdmissionPlugin {
  async function annotated({ namespace, signal }: AdmissionRequest, annotation: string): Promise<readonly Toleration[] | undefined> {
    const found = await namespaces.find("", namespace, signal);
    if (!found) throw notFound({ group: "", resource: "namespaces" }, namespace);
    const text = found.metadata.annotations?.[annotation];
    if (text === undefined) return undefined;
    return text === "" ? [] : tolerationsOf(text);
  }

  async function check(request: AdmissionRequest): Promise<void> {
    const { tolerations = [] } = (request.object as Pod).spec;
    if (tolerations.length === 0) return;
    const own = await annotated(request, ALLOWED_ANNOTATION);
    const allowed = own ?? restriction.allowed;
    if (allowed.length > 0 && !tolerations.every((one) => allowed.some((whole) => isTolerated(whole, one))))
      throw failure(`pod tolerations (possibly merged with namespace default tolerations) conflict with its ${own ? "namespace" : "cluster"} whitelist`);
  }

  return {
    name: "PodTolerationRestriction",
    handles: (request) => (request.operation === "CREATE" || request.operation === "UPDATE") && isResource(request, "pods"),
    async admit(request) {
      const { spec } = request.object as Pod;
      const more = request.operation === "CREATE" ? [...((await annotated(request, DEFAULTS_ANNOTATION)) ?? restriction.defaults)] : [];
      if (!isBestEffort(request.object as Pod)) more.push({ key: "node.kubernetes.io/memory-pressure", operator: "Exists", effect: "NoSchedule" });
      if (more.length > 0) spec.tolerations = mergeTolerations(spec.tolerations ?? [], more);
      await check(request);
    },
    validate: check,
  };
}

/** Throws for a text that is no list. */
function tolerationsOf(text: string): readonly Toleration[] {
  let value: unknown;
  try {
    ({ value } = parseJson(text));
  } catch (error) {
    throw failure((error as Error).message);
  }
  if (value === null) return [];
  if (!Array.isArray(value)) throw failure(`json: cannot unmarshal ${jsonKindOf(value)} into Go value of type []v1.Toleration`);
  return value.map(tolerationOf);
}

const FIELDS = [["key", "string"], ["operator", "string"], ["value", "string"], ["effect", "string"], ["tolerationSeconds", "number"]] as const;

/** As Go reads one: whatever the case of names; what is null, or that nobody knows, is passed by. Throws for a value of another type. */
function tolerationOf(value: unknown): Toleration {
  if (value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw failure(`json: cannot unmarshal ${jsonKindOf(value)} into Go value of type v1.Toleration`);
  const read: Record<string, unknown> = {};
  for (const [given, one] of Object.entries(value)) {
    const field = FIELDS.find(([name]) => name.toLowerCase() === given.toLowerCase());
    if (!field || one === null) continue;
    const [name, type] = field;
    if (typeof one !== type && !(type === "number" && typeof one === "bigint")) throw failure(`json: cannot unmarshal ${jsonKindOf(one)} into Go struct field Toleration.${name} of type ${type === "number" ? "int64" : type}`);
    read[name] = one;
  }
  return read;
}

/** No 403, as upstream's is none. */
function failure(message: string): Error { return statusError({ code: 500, reason: "", message }); }
