/**
 * APIService (apiregistration.k8s.io/v1): who serves a group and version. Without a service: this server.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/api-service-v1/
 * Source: kubernetes v1.36 kube-aggregator/pkg/registry/apiservice/strategy.go, pkg/apis/apiregistration/{v1/defaults,validation/validation}.go
 */
import { child, type FieldError, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { dns1035Label, dns1123Subdomain, pathSegmentName, portNumber } from "../../api/meta/names.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { problems } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";

export interface APIService extends ApiObject {
  spec: APIServiceSpec;
  status?: { conditions?: APIServiceCondition[] | undefined } | undefined;
}
export interface APIServiceSpec {
  service?: { namespace?: string | undefined; name?: string | undefined; port?: number | undefined } | undefined;
  group?: string | undefined;
  version?: string | undefined;
  insecureSkipTLSVerify?: boolean | undefined;
  caBundle?: string | undefined;
  groupPriorityMinimum: number;
  versionPriority: number;
}
export interface APIServiceCondition { type: string; status: string; lastTransitionTime?: string | undefined; reason?: string | undefined; message?: string | undefined }

const GROUP_PRIORITY_MAX = 20_000;
const VERSION_PRIORITY_MAX = 1000;
const PORT = 443;
const STATUSES = ["True", "False", "Unknown"];

export const apiServices = defineResource<APIService>({
  group: "apiregistration.k8s.io", version: "v1", kind: "APIService", plural: "apiservices",
  generation: false, unconditionalUpdate: false,
  validateName: pathSegmentName, anyFinalizer: true,

  defaults({ spec }) { if (spec.service) spec.service.port ??= PORT; },
  prepareForCreate(object, { nowMs }) {
    object.status = object.spec.service ? {} : {
      conditions: [{ type: "Available", status: "True", lastTransitionTime: timestamp(nowMs), reason: "Local", message: "Local APIServices are always available" }],
    };
  },
  *validate({ metadata, spec }) {
    const name = `${spec.version ?? ""}.${spec.group ?? ""}`;
    for (const field of ["generateName", "name"] as const) { // what cannot stand in a path is told already
      const given = metadata[field] ?? "";
      if (given !== "" && given !== name && pathSegmentName(given).length === 0) yield invalid(`metadata.${field}`, given, `must be \`spec.version+"."+spec.group\`: ${goQuote(name)}`);
    }
    yield* validateSpec("spec", spec);
  },
  subresources: {
    status: statusPart<APIService>({
      keepsMetadata: true,
      *validate({ status }) {
        for (const [i, condition] of (status?.conditions ?? []).entries())
          if (!STATUSES.includes(condition.status)) yield notSupported(child(index("status.conditions", i), "status"), condition.status, STATUSES);
      },
    }),
  },
});

function* validateSpec(path: string, spec: Readonly<APIServiceSpec>): Iterable<FieldError> {
  const { group = "", version = "", groupPriorityMinimum = 0, versionPriority = 0, service, caBundle = "", insecureSkipTLSVerify = false } = spec;
  const at = (name: string): string => child(path, name);
  if (group === "" && version !== "v1") yield required(at("group"), "only v1 may have an empty group and it better be legacy kube");
  if (group !== "") yield* problems(at("group"), group, dns1123Subdomain(group));
  yield* problems(at("version"), version, dns1035Label(version));
  if (groupPriorityMinimum <= 0 || groupPriorityMinimum > GROUP_PRIORITY_MAX) yield invalid(at("groupPriorityMinimum"), groupPriorityMinimum, `must be positive and less than ${GROUP_PRIORITY_MAX}`);
  if (versionPriority <= 0 || versionPriority > VERSION_PRIORITY_MAX) yield invalid(at("versionPriority"), versionPriority, `must be positive and less than ${VERSION_PRIORITY_MAX}`);
  if (!service) {
    if (caBundle !== "") yield invalid(at("caBundle"), `${Buffer.from(caBundle, "base64").length} bytes`, "local APIServices may not have a caBundle");
    if (insecureSkipTLSVerify) yield invalid(at("insecureSkipTLSVerify"), true, "local APIServices may not have insecureSkipTLSVerify");
    return;
  }
  if (!service.namespace) yield required(child(path, "service", "namespace"));
  if (!service.name) yield required(child(path, "service", "name"));
  const wrong = portNumber(service.port ?? 0);
  if (wrong.length > 0) yield invalid(child(path, "service", "port"), service.port ?? 0, `port is not valid: ${wrong.join(", ")}`);
  if (insecureSkipTLSVerify && caBundle !== "") yield invalid(at("insecureSkipTLSVerify"), true, "may not be true if caBundle is present");
}
