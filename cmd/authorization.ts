/** Who decides what callers may do, by kube-apiserver's settings: --authorization-mode, or --authorization-config. Without either: Node, RBAC. */
import { statSync } from "node:fs";
import { abacAuthorizer, readPolicies } from "../core/authz/abac.ts";
import { authorizerUnion, countedAuthorizer, decisionsCounter, superuserAuthorizer } from "../core/authz/authz.ts";
import type { Authorizer } from "../core/authz/authorizer.ts";
import { authorizationConfiguration, AUTHORIZER_TYPES, type AuthorizerSettings, type AuthorizerType, type WebhookSettings } from "../core/authz/configuration.ts";
import { webhookAuthorizer, webhookMetrics } from "../core/authz/webhook.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import { once } from "../core/lifecycle/once.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { ReviewServer } from "../core/net/review-call.ts";
import type { Log } from "../core/observe/log.ts";
import type { Metrics } from "../core/observe/metrics.ts";
import type { ApiServerArgs } from "./apiserver-args.ts";
import { reviewServer } from "./authentication.ts";
import { ConfigError, readText } from "./config/config.ts";
import { reloadMeter } from "./reload-meter.ts";
import { reloadedFile } from "./reloaded-file.ts";

interface Options {
  readonly args: ApiServerArgs;
  /** This server's, among several. */
  readonly serverId: string;
  readonly node: Authorizer;
  readonly rbac: Authorizer;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

const WEBHOOK_FLAGS = ["authorization-webhook-config-file", "authorization-webhook-version", "authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl"] as const;

/** Those that are made when the server starts, or not at all. */
const NOT_ADDED: readonly AuthorizerType[] = ["Node", "RBAC", "ABAC"];

interface Order { readonly types: readonly AuthorizerType[]; readonly authorizer: Authorizer }

/** Throws ConfigError. */
export function authorizationSettings({ args, node, rbac, serverId, clock, log, metrics }: Options): { readonly authorizer: Authorizer; readonly parts: readonly Runnable[] } {
  const measured = webhookMetrics(metrics);
  const decisions = decisionsCounter(metrics);
  const made = (settings: readonly AuthorizerSettings[]): Authorizer => authorizerUnion([superuserAuthorizer, ...settings.map((one) => countedAuthorizer(authorizerOf(one), { ...one, decisions }))]);
  const abac = once(() => readAbac(args.text("authorization-policy-file") ?? "", log));
  const authorizerOf = ({ type, name, webhook }: AuthorizerSettings): Authorizer => {
    switch (type) {
      case "Node": return node;
      case "RBAC": return rbac;
      case "ABAC": return abac();
      case "AlwaysAllow": return constant("allow", { verbs: ["*"], apiGroups: ["*"], resources: ["*"], resourceNames: [] });
      case "AlwaysDeny": return constant("no-opinion");
      case "Webhook": return webhookAuthorizer({ name, settings: webhook!, server: serverOf(webhook!), clock, log, metrics: measured });
    }
  };
  const path = args.text("authorization-config");
  const modes = args.list("authorization-mode");
  if (path === undefined) return { authorizer: made(fromFlags(args, modes)), parts: [] };
  if (modes.length > 0 || WEBHOOK_FLAGS.some((name) => args.text(name) !== undefined)) throw new ConfigError("authorization-config cannot be used together with authorization-mode or authorization-webhook-* settings");
  const file = reloadedFile<Order>({
    setting: "authorization-config", path, clock, log,
    read(text, before) {
      const settings = authorizationConfiguration(text, { required: before?.types, fileProblem });
      const added = before && settings.find(({ type }) => NOT_ADDED.includes(type) && !before.types.includes(type));
      if (added) throw new Error(`authorizer type ${added.type} is not allowed if it was not enabled at initial server startup`);
      return { types: settings.map(({ type }) => type), authorizer: made(settings) };
    },
    meter: reloadMeter(metrics, "authorization", { serverId, clock }),
  });
  return { authorizer: { authorize: (attributes) => file.current().authorizer.authorize(attributes), rulesFor: (user, namespace) => file.current().authorizer.rulesFor(user, namespace) }, parts: [file.part] };
}

function fromFlags(args: ApiServerArgs, modes: readonly string[]): readonly AuthorizerSettings[] {
  const file = args.text("authorization-webhook-config-file");
  const policies = args.text("authorization-policy-file") ?? "";
  if (policies !== "" && !modes.includes("ABAC")) throw new ConfigError("cannot specify authorization-policy-file without mode ABAC");
  if (file !== undefined && !modes.includes("Webhook")) throw new ConfigError("cannot specify authorization-webhook-config-file without mode Webhook");
  return (modes.length > 0 ? modes : ["Node", "RBAC"]).map((mode, i, all): AuthorizerSettings => {
    if (!AUTHORIZER_TYPES.includes(mode as AuthorizerType)) throw new ConfigError(`authorization-mode ${JSON.stringify(mode)} is not a valid mode; there are ${AUTHORIZER_TYPES.join(", ")}`);
    if (all.indexOf(mode) < i) throw new ConfigError(`authorization-mode ${JSON.stringify(mode)} is given twice`);
    if (mode === "ABAC" && policies === "") throw new ConfigError("authorization-mode ABAC's authorization policy file not passed");
    if (mode !== "Webhook") return { type: mode as AuthorizerType, name: mode.toLowerCase() };
    if (file === undefined) throw new ConfigError("authorization-mode Webhook's authorization-webhook-config-file is required");
    const version = args.text("authorization-webhook-version") ?? "v1beta1";
    if (version !== "v1" && version !== "v1beta1") throw new ConfigError(`authorization-webhook-version must be v1 or v1beta1, not ${JSON.stringify(version)}`);
    return {
      type: "Webhook", name: "default",
      webhook: {
        kubeconfigFile: file, version, timeoutMs: 30_000, failurePolicy: "NoOpinion", cacheAuthorized: true, cacheUnauthorized: true, matchConditions: [],
        authorizedMs: args.durationMs("authorization-webhook-cache-authorized-ttl") ?? 300_000, unauthorizedMs: args.durationMs("authorization-webhook-cache-unauthorized-ttl") ?? 30_000,
      },
    };
  });
}

/** Throws ConfigError. */
function readAbac(path: string, log: Log): Authorizer {
  const text = readText(path);
  if (text === undefined) throw new ConfigError(`authorization-policy-file: open ${path}: no such file or directory`);
  try {
    const { policies, old } = readPolicies(text, path);
    if (old) log.warn("a policy file has lines without a version, which are of the first format", { path });
    return abacAuthorizer(policies);
  } catch (error) {
    throw new ConfigError(`authorization-policy-file: ${(error as Error).message}`, { cause: error });
  }
}

function fileProblem(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) return `error loading file: stat ${path}: no such file or directory`;
  return found.isFile() ? undefined : "must be a regular file";
}

function serverOf({ kubeconfigFile }: WebhookSettings): ReviewServer {
  if (kubeconfigFile === undefined) throw new Error("connectionInfo.type InClusterConfig: this server does not run in a pod; use KubeConfigFile");
  return reviewServer(kubeconfigFile);
}

function constant(decision: "allow" | "no-opinion", rule?: { readonly verbs: readonly string[]; readonly apiGroups: readonly string[]; readonly resources: readonly string[]; readonly resourceNames: readonly string[] }): Authorizer {
  return {
    authorize: () => ({ decision, reason: decision === "allow" ? "" : "Everything is forbidden." }),
    rulesFor: async () => ({ resourceRules: rule ? [rule] : [], pathRules: rule ? [{ verbs: ["*"], nonResourceURLs: ["*"] }] : [], incomplete: false }),
  };
}
