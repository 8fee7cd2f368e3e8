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
import { internalError } from "../api/meta/status-error.ts";
import type { Lookup } from "../client/lookup.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { isResource, refusal } from "./refuse.ts";

type Labels = Readonly<Record<string, string>>;

const ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector";
const DEFAULT = "clusterDefaultNodeSelector";

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
    const own = (request.object as Pod).spec.nodeSelector ?? {};
    if (Object.entries(own).some(([key, value]) => wanted[key] !== undefined && wanted[key] !== value)) throw refusal(request, "pod node label selector conflicts with its namespace node label selector");
    const merged = { ...wanted, ...own };
    const allowed = labelsOf(selectors[namespace] ?? "");
    if (Object.keys(allowed).length > 0 && Object.entries(merged).some(([key, value]) => allowed[key] !== value)) throw refusal(request, "pod node label selector labels conflict with its namespace whitelist");
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
  if (selector.trim() === "") return {};
  return Object.fromEntries(selector.split(",").map((term) => {
    const parts = term.split("=").map((part) => part.trim());
    if (parts.length !== 2) throw internalError(`invalid selector: ${selector}`);
    return parts;
  }));
}
