/** Which features are on, and which resources are served with them: --kube-apiserver-arg feature-gates and runtime-config. */
import type { ClusterTrustBundle } from "../../core/api/gen/certificates.v1beta1.ts";
import type { ResourceRow } from "../../core/api/schema/resources.ts";
import type { ResourceRef } from "../../core/client/client.ts";
import { CLUSTER_TRUST_BUNDLES, CLUSTER_TRUST_BUNDLES_ALPHA } from "../../core/client/resources.ts";
import type { Log } from "../../core/observe/log.ts";
import { featureGateProblem, featureGates, featureGateWarning, switchedOn } from "../../core/server/feature-gates.ts";
import { gatesWithTheirResources, runtimeConfigProblem, servedResources } from "../../core/server/runtime-config.ts";
import type { ApiServerArgs } from "../apiserver-args.ts";
import { ConfigError } from "../config/config.ts";
import { unmetNeeds } from "../kubelet-gates.ts";

/** Those that are switched on. Throws ConfigError for gates and API versions that are not as they are said to be. */
export function checkedGates(args: ApiServerArgs, log: Log): ReadonlySet<string> {
  const check = (name: "feature-gates" | "runtime-config", problemOf: (text: string) => string | undefined): void => {
    for (const one of args.list(name)) {
      const problem = problemOf(one);
      if (problem !== undefined) throw new ConfigError(`--kube-apiserver-arg ${name}: ${problem}`);
    }
  };
  check("feature-gates", featureGateProblem);
  const gates = switchedOn(args.list("feature-gates")), byDefault = new Set(featureGates().flatMap(({ name, enabled }) => (enabled ? [name] : [])));
  const [unmet] = unmetNeeds((name) => gates.has(name) || byDefault.has(name));
  if (unmet !== undefined) throw new ConfigError(`--kube-apiserver-arg feature-gates: ${unmet}`);
  check("runtime-config", (text) => runtimeConfigProblem(text, gates));
  for (const gate of args.list("feature-gates").map(featureGateWarning)) if (gate) log.warn("a GA feature gate is set; it will be removed in a future release, and the feature is as it is with or without it", gate);
  return gates;
}

/** The resources that are served, and those of the gates that do something: none whose resource is not among them. */
export function servedWith(gates: ReadonlySet<string>, args: ApiServerArgs, log: Log): { readonly served: readonly ResourceRow[]; readonly gates: ReadonlySet<string> } {
  const served = servedResources(args.list("runtime-config"), gates);
  const { gates: working, lacking } = gatesWithTheirResources(gates, served);
  for (const one of lacking) log.warn("a feature gate does nothing until its resource is served: give --kube-apiserver-arg runtime-config", one);
  return { served, gates: working };
}

/** ClusterTrustBundles in the newest version in which they are served; undefined: they are not. */
export function trustBundlesOf(served: readonly ResourceRow[]): ResourceRef<ClusterTrustBundle> | undefined {
  return [CLUSTER_TRUST_BUNDLES, CLUSTER_TRUST_BUNDLES_ALPHA].find((ref) => served.some((row) => row.group === ref.group && row.version === ref.version && row.plural === ref.plural));
}
