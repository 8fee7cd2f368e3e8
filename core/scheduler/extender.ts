/**
 * An extender: a web server that is asked about nodes after our filters, about scores beside ours, about whom to evict, and to bind. What it is sent
 * and what it answers is upstream's extender v1: names of nodes if it knows nodes itself (nodeCacheCapable), else whole nodes.
 *
 * Source: kubernetes v1.36 pkg/scheduler/extender.go, staging/src/k8s.io/kube-scheduler/extender/v1/types.go
 */
import type { Container, Node, Pod } from "../api/gen/core.v1.ts";
import type { JsonValue } from "../api/codec/json-document.ts";
import { parseJson, stringify } from "../api/codec/json.ts";
import { parseDurationMs } from "../api/meta/duration.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { fetchTls } from "../net/tls.ts";
import type { ExtenderConfig } from "./config/configuration.ts";
import { bindAnswer, filterAnswer, preemptAnswer, priorityAnswer } from "./extender-answers.ts";
import type { LiveNode } from "./node-info.ts";

/** Where the configuration says nothing, or 0s. */
const TIMEOUT_MS = 5_000;

export interface TlsFiles { readonly ca?: string | undefined; readonly cert?: string | undefined; readonly key?: string | undefined }

interface Deps {
  readonly clock: Clock;
  /** PEM of the files the configuration names. */
  readonly tls?: TlsFiles | undefined;
}

/** Nodes it keeps, and why it turned the others down. */
export interface ExtenderFilterResult {
  readonly nodes: readonly LiveNode[];
  readonly failed: Readonly<Record<string, string>>;
  readonly unresolvable: Readonly<Record<string, string>>;
}

export interface Victims { readonly pods: readonly Readonly<Pod>[]; readonly violations: number }

export class Extender {
  readonly #config: ExtenderConfig;
  readonly #deps: Deps;
  readonly #managed: ReadonlySet<string>;

  constructor(config: ExtenderConfig, deps: Deps) {
    this.#config = config;
    this.#deps = deps;
    this.#managed = new Set((config.managedResources ?? []).map(({ name }) => name));
  }

  get name(): string { return this.#config.urlPrefix; }
  /** Whether pods are placed without it when it cannot be asked. */
  get ignorable(): boolean { return this.#config.ignorable ?? false; }
  get weight(): number { return this.#config.weight ?? 0; }
  get filters(): boolean { return Boolean(this.#config.filterVerb); }
  get prioritizes(): boolean { return Boolean(this.#config.prioritizeVerb); }
  get preempts(): boolean { return Boolean(this.#config.preemptVerb); }
  get binds(): boolean { return Boolean(this.#config.bindVerb); }

  /** All pods, or those that ask for a resource it manages. */
  isInterestedIn({ spec }: Readonly<Pod>): boolean {
    const asks = ({ resources }: Container): boolean => [...Object.keys(resources?.requests ?? {}), ...Object.keys(resources?.limits ?? {})].some((name) => this.#managed.has(name));
    return this.#managed.size === 0 || spec.containers.some(asks) || (spec.initContainers ?? []).some(asks);
  }

  async filter(pod: Readonly<Pod>, nodes: readonly LiveNode[], signal: AbortSignal): Promise<ExtenderFilterResult> {
    const result = filterAnswer(await this.#send(this.#config.filterVerb!, { Pod: bare(pod), ...this.#nodesOf(nodes) }, signal));
    if (result.Error) throw new Error(result.Error);
    const byName = new Map(nodes.map((node) => [node.name, node]));
    const kept = this.#config.nodeCacheCapable && result.NodeNames ? result.NodeNames : (result.Nodes?.items ?? []).map(({ metadata }) => metadata?.name ?? "");
    return {
      nodes: kept.map((name) => {
        const node = byName.get(name);
        if (!node) throw new Error(`extender "${this.name}" claims a filtered node "${name}" which is not found in the input node list`);
        return node;
      }),
      failed: result.FailedNodes ?? {}, unresolvable: result.FailedAndUnresolvableNodes ?? {},
    };
  }

  /** 0…10 by name of node. */
  async prioritize(pod: Readonly<Pod>, nodes: readonly LiveNode[], signal: AbortSignal): Promise<Map<string, number>> {
    const result = priorityAnswer(await this.#send(this.#config.prioritizeVerb!, { Pod: bare(pod), ...this.#nodesOf(nodes) }, signal));
    const scores = new Map<string, number>();
    for (const { Host = "", Score = 0 } of result) scores.set(Host, (scores.get(Host) ?? 0) + Score); // one that is named twice has both
    return scores;
  }

  async bind({ metadata: { name, namespace, uid } }: Readonly<Pod>, node: string, signal: AbortSignal): Promise<void> {
    const { Error: problem } = bindAnswer(await this.#send(this.#config.bindVerb!, { PodName: name, PodNamespace: namespace, PodUID: uid, Node: node }, signal));
    if (problem) throw new Error(problem);
  }

  /** The candidates it leaves, perhaps with other victims; each must be on its node. */
  async preempt(pod: Readonly<Pod>, candidates: ReadonlyMap<string, Victims>, nodeOf: (name: string) => LiveNode | undefined, signal: AbortSignal): Promise<Map<string, Victims>> {
    const cached = this.#config.nodeCacheCapable;
    const victims = Object.fromEntries([...candidates].map(([node, { pods, violations }]) => [node, { Pods: cached ? pods.map(({ metadata }) => ({ UID: metadata.uid })) : pods.map(bare), NumPDBViolations: violations }]));
    const result = preemptAnswer(await this.#send(this.#config.preemptVerb!, { Pod: bare(pod), NodeNameToVictims: cached ? null : victims, NodeNameToMetaVictims: cached ? victims : null }, signal));
    return new Map(Object.entries(result.NodeNameToMetaVictims ?? {}).map(([name, { Pods, NumPDBViolations = 0 }]) => {
      const node = nodeOf(name);
      if (!node) throw new Error(`nodeinfo not found for node name "${name}"`);
      const pods = (Pods ?? []).map(({ UID = "" }) => {
        const placed = node.pods.get(UID);
        if (!placed) throw new Error(`extender: ${this.name} claims to preempt pod (UID: &{${UID}}) on node: ${name}, but the pod is not found on that node`);
        return placed.pod;
      });
      return [name, { pods, violations: NumPDBViolations }];
    }));
  }

  #nodesOf(nodes: readonly LiveNode[]): object {
    return this.#config.nodeCacheCapable ? { Nodes: null, NodeNames: nodes.map(({ name }) => name) } : { Nodes: { metadata: {}, items: nodes.map(({ node }) => bare(node)) }, NodeNames: null };
  }

  async #send(verb: string, body: unknown, signal: AbortSignal): Promise<JsonValue> {
    const { urlPrefix, httpTimeout, enableHTTPS, tlsConfig } = this.#config, sent = stringify(body);
    const url = `${urlPrefix.replace(/\/+$/, "")}/${verb}`;
    const late = new AbortController();
    let answered = false;
    const alarm = this.#deps.clock.after((httpTimeout && parseDurationMs(httpTimeout)) || TIMEOUT_MS, () => late.abort(new Error(answered ? LATE_BODY : `Post "${url}": ${LATE}`)));
    const { tls: files } = this.#deps;
    const tls = /^https:/i.test(url) ? fetchTls({ ...files, serverName: tlsConfig?.serverName, insecure: tlsConfig?.insecure || (enableHTTPS && !files?.ca) }) : undefined;
    try {
      const response = await fetch(url, {
        method: "POST", headers: { "content-type": "application/json" }, body: sent, signal: AbortSignal.any([signal, late.signal]), ...(tls && { tls }),
      } as RequestInit);
      answered = true;
      if (response.status !== 200) {
        await response.body?.cancel();
        throw new Error(`failed ${verb} with extender at URL ${url}, code ${response.status}`);
      }
      return decoded(await textOf(response, ANSWER_BYTES_MIN + 2 * Buffer.byteLength(sent)));
    } catch (error) {
      if (late.signal.aborted) throw late.signal.reason;
      throw answered || signal.aborted ? error : new Error(`Post "${url}": ${unreachable(error, new URL(url))}`, { cause: error });
    } finally {
      alarm.cancel();
    }
  }
}

/** Beside what it was sent of each node: why not. */
const ANSWER_BYTES_MIN = 16 * 1024 * 1024;

/** Throws an Error of one that is too long: all else runs in this process, too. */
async function textOf({ body }: Response, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > bytesMax) throw new Error(`the answer is longer than ${bytesMax} bytes`); // leaving the loop ends the connection
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length).toString();
}

/** What Go's client says when the time is over: before there is an answer, and while it is read. */
const LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
const LATE_BODY = "context deadline exceeded (Client.Timeout or context cancellation while reading body)";
const DIAL_FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused", EHOSTUNREACH: "no route to host", ENETUNREACH: "network is unreachable", ETIMEDOUT: "connection timed out",
};
const UNTRUSTED: ReadonlySet<string> = new Set(["DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"]);

/** Why there is no answer, in Go's words where we know them. */
function unreachable(error: unknown, { protocol, hostname, port }: URL): string {
  const { code = "", message } = error as Error & { readonly code?: string };
  if (code in DIAL_FAULTS) return `dial tcp ${hostname}:${port || (protocol === "https:" ? 443 : 80)}: connect: ${DIAL_FAULTS[code]}`;
  if (code === "ENOTFOUND") return `dial tcp: lookup ${hostname}: no such host`;
  if (code === "ECONNRESET") return "EOF";
  if (code === "EPROTO") return "http: server gave HTTP response to HTTPS client";
  if (UNTRUSTED.has(code)) return "tls: failed to verify certificate: x509: certificate signed by unknown authority";
  return message;
}

/** As upstream sends it: without saying what it is. */
function bare<T extends Pod | Node>({ apiVersion: _version, kind: _kind, ...rest }: Readonly<T>): Omit<T, "apiVersion" | "kind"> {
  return rest;
}

/** An answer, or what Go's decoder says of it. */
function decoded(text: string): JsonValue {
  try {
    return parseJson(text).value;
  } catch (error) {
    if (!(error instanceof Error) || error.message !== "unexpected end of JSON input") throw error;
    throw new Error(text.trim() === "" ? "EOF" : "unexpected EOF", { cause: error });
  }
}
