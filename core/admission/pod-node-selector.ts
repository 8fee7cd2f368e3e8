/**
 * PodNodeSelector: a namespace's pods run on the nodes its annotation scheduler.alpha.kubernetes.io/node-selector selects.
 *
 *   podNodeSelectorPluginConfig:
 *     clusterDefaultNodeSelector: "env=test"     # for namespaces without the annotation
 *     <namespace>: "env=test,zone=a"             # what its pods may select at all
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/podnodeselector/admission.go
 */
import type { Namespace, Pod } from "../api/gen/core.v1.ts";
import { formatFieldError, invalid } from "../api/meta/field-error.ts";
import { labelValue, qualifiedName } from "../api/meta/names.ts";
import { forbidden, internalError, statusError } from "../api/meta/status-error.ts";
import type { Lookup } from "../client/lookup.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { isResource } from "./refuse.ts";

type Labels = Readonly<Record<string, string>>;

const ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector";
const DEFAULT = "clusterDefaultNodeSelector";
const PODS = { group: "", resource: "pods" };

/** A namespace to its selector. What is of another shape is ignored, as upstream does. */
export function podNodeSelectors(configuration: unknown): Labels {
  const given = (configuration as { podNodeSelectorPluginConfig?: unknown } | undefined)?.podNodeSelectorPluginConfig;
  return typeof given === "object" && given !== null ? Object.fromEntries(Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === "string")) : {};
}

export function podNodeSelector({ namespaces, selectors }: { readonly namespaces: Lookup<Namespace>; readonly selectors: Labels }): AdmissionPlugin {
  async function check(request: AdmissionRequest): Promise<Labels> {
    const { namespace, signal } = request;
    const found = await namespaces.find("", namespace, signal);
    if (!found) throw internalError(`namespace ${namespace} does not exist`);
    const wanted = labelsOf(found.metadata.annotations?.[ANNOTATION] ?? selectors[DEFAULT] ?? "");
    const { metadata: { name = "" }, spec: { nodeSelector: own = {} } } = request.object as Pod; // a name that is still to be made is not told of
    if (Object.entries(own).some(([key, value]) => wanted[key] !== undefined && wanted[key] !== value)) throw forbidden(PODS, name, "pod node label selector conflicts with its namespace node label selector");
    const merged = { ...wanted, ...own };
    const allowed = labelsOf(selectors[namespace] ?? "");
    if (Object.keys(allowed).length > 0 && Object.entries(merged).some(([key, value]) => allowed[key] !== value)) throw forbidden(PODS, name, "pod node label selector labels conflict with its namespace whitelist");
    return merged;
  }

  return {
    name: "PodNodeSelector",
    handles: (request) => request.operation === "CREATE" && isResource(request, "pods"),
    async admit(request) {
      const merged = await check(request);
      if (Object.keys(merged).length > 0) (request.object as Pod).spec.nodeSelector = merged;
    },
    async validate(request) { await check(request); },
  };
}

/** "a=b,c=d". Throws for what says more than that. */
function labelsOf(selector: string): Labels {
  if (selector === "") return {};
  return Object.fromEntries(selector.split(",").map((term) => {
    const parts = term.split("=");
    if (parts.length !== 2) throw unreadable(`invalid selector: [${parts.join(" ")}]`);
    const [key = "", value = ""] = parts.map((part) => part.trim());
    const wrongKey = qualifiedName(key), wrongValue = labelValue(value);
    if (wrongKey.length > 0) throw unreadable(formatFieldError(invalid("<nil>", key, wrongKey.join("; "))));
    if (wrongValue.length > 0) throw unreadable(formatFieldError(invalid(`[${key}]`, value, wrongValue.join("; "))));
    return [key, value];
  }));
}

function unreadable(message: string): Error { return statusError({ code: 500, reason: "", message }); }
