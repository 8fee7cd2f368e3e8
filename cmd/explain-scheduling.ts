/**
 * `coracle explain-scheduling POD`: why a pod is where it is, or where it cannot go, filter by filter and node by node. Asks the server, which thinks
 * it through over what its scheduler knows: core/scheduler/explain.ts.
 */
import { notFound, StatusError } from "../core/api/meta/status-error.ts";
import { explanationTable } from "../core/scheduler/explain-table.ts";
import type { SchedulingExplanation } from "../core/scheduler/explain.ts";
import type { SchedulingExplainer } from "../core/scheduler/explainer.ts";
import { json } from "../core/server/answer.ts";
import type { PathHandler } from "../core/server/scope.ts";
import { connect } from "./admin-client.ts";
import { ConfigError } from "./config/config.ts";
import { terminalText } from "./terminal-text.ts";

const USAGE = `Usage: coracle explain-scheduling POD [-n NAMESPACE] [-o table|json] [--kubeconfig FILE]

  -n, --namespace   the pod's namespace (default "default"); or write NAMESPACE/POD
  -o, --output      table, or json: all of it, for programs
  --kubeconfig      default: $KUBECONFIG, else the one the server wrote

It takes the right to GET /explain-scheduling/*, which administrators have.`;

const FLAGS: Readonly<Record<string, "namespace" | "output" | "kubeconfig">> = { "-n": "namespace", "--namespace": "namespace", "-o": "output", "--output": "output", "--kubeconfig": "kubeconfig" };
const PATH = /^\/explain-scheduling\/namespaces\/([^/]+)\/pods\/([^/]+)$/;

export async function explainScheduling(argv: readonly string[]): Promise<number> {
  if (argv.length === 0 || argv.includes("--help") || argv.includes("-h")) {
    console.log(USAGE);
    return argv.length === 0 ? 2 : 0;
  }
  const { namespace, pod, output, kubeconfig } = read(argv);
  const { client } = connect(kubeconfig, "coracle-explain-scheduling");
  try {
    const path = `/explain-scheduling/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}`;
    const explanation = (await client.request({ method: "GET", path, signal: AbortSignal.timeout(30_000) })) as SchedulingExplanation;
    console.log(output === "json" ? JSON.stringify(explanation, null, 2) : terminalText(explanationTable(explanation).trimEnd()));
    return 0;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    console.error(`coracle: ${terminalText(error.message)}`);
    return 1;
  }
}

function read(argv: readonly string[]): { readonly namespace: string; readonly pod: string; readonly output: string; readonly kubeconfig: string | undefined } {
  const given: Partial<Record<"namespace" | "output" | "kubeconfig", string>> = {};
  const words: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const [word = "", value] = argv[i]!.startsWith("--") ? splitOnce(argv[i]!, "=") : [argv[i]!];
    const flag = Object.hasOwn(FLAGS, word) ? FLAGS[word] : undefined;
    if (flag) given[flag] = value ?? argv[++i] ?? fail(`${word} needs a value`);
    else if (word.startsWith("-")) fail(`unknown flag ${word}`);
    else words.push(word);
  }
  if (words.length !== 1) fail(words.length === 0 ? "which pod?" : "one pod at a time");
  const { output = "table" } = given;
  if (output !== "table" && output !== "json") fail(`-o ${output}: there are table and json`);
  const [first = "", second] = splitOnce(words[0]!.replace(/^pods?\//, ""), "/");
  if (second?.includes("/")) fail(`${JSON.stringify(words[0])} is neither POD nor NAMESPACE/POD`);
  return { namespace: second === undefined ? given.namespace ?? "default" : first, pod: second ?? first, output, kubeconfig: given.kubeconfig };
}

function splitOnce(text: string, by: string): [string, string?] {
  const at = text.indexOf(by);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function fail(problem: string): never {
  throw new ConfigError(`${problem}\n${USAGE}`);
}

/** GET /explain-scheduling/namespaces/NAMESPACE/pods/POD */
export function explainSchedulingPath(explainer: SchedulingExplainer): PathHandler {
  return async ({ method, path, signal }) => {
    const [, namespace, pod] = (method === "GET" && PATH.exec(path)) || [];
    if (namespace === undefined || pod === undefined) return undefined;
    const name = decodeURIComponent(pod);
    const explanation = await explainer.explain(decodeURIComponent(namespace), name, signal);
    if (!explanation) throw notFound({ group: "", resource: "pods" }, name);
    return json(explanation);
  };
}
