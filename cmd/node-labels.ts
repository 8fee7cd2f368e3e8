/**
 * Labels a node gives itself, as flags have them: key=value. Those it may not give itself are refused when it starts, rather than by the API server ever after.
 *
 * Source: kubernetes v1.36 cmd/kubelet/app/options/options.go ValidateKubeletFlags
 */
import { forbiddenNodeLabels } from "../core/admission/node-labels.ts";
import { labelValue, qualifiedName } from "../core/api/meta/names.ts";
import { ConfigError } from "./config/config.ts";
import { pair } from "./pair.ts";

/** Throws ConfigError for what is none. */
export function nodeLabels(texts: readonly string[], flag = "--node-label"): Readonly<Record<string, string>> {
  return Object.fromEntries(texts.map((text) => {
    const [key, value] = pair(flag, text);
    const [problem] = [...qualifiedName(key), ...labelValue(value)];
    if (problem !== undefined) throw new ConfigError(`${flag} ${JSON.stringify(text)}: ${problem}`);
    if (forbiddenNodeLabels({ [key]: value }).length > 0)
      throw new ConfigError(`${flag} ${JSON.stringify(text)}: of labels of kubernetes.io and k8s.io a node gives itself only those that describe it, and those of kubelet.kubernetes.io and node.kubernetes.io; an administrator gives it others: coracle kubectl label node`);
    return [key, value];
  }));
}
