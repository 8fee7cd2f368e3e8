/** What is checked, completed or refused before it is stored: the plug-ins, and among them the webhooks and policies that users install. */
import { dirname, resolve } from "node:path";
import { admissionMeter, conditionMeter, mutationMeter, policyMeter, webhookMeter } from "../../core/admission/admission-metrics.ts";
import { type AdmissionChain, admissionChain } from "../../core/admission/chain.ts";
import { admissionConfiguration } from "../../core/admission/configuration.ts";
import { type AdmissionDeps, admissionPlugins } from "../../core/admission/plugins.ts";
import { rowOfKind } from "../../core/admission/policy/params.ts";
import { mutatingPolicies } from "../../core/admission/policy/mutating.ts";
import { validatingPolicies } from "../../core/admission/policy/validating.ts";
import { webhookKubeconfig, type WebhookUsers } from "../../core/admission/webhook/users.ts";
import { mutatingWebhooks, validatingWebhooks, type WebhookDeps } from "../../core/admission/webhook/webhook.ts";
import type { GroupVersionKind } from "../../core/api/meta/gvk.ts";
import type { ResourceRow } from "../../core/api/schema/resources.ts";
import { escalationGuard } from "../../core/authz/escalation.ts";
import type { Client } from "../../core/client/client.ts";
import type { Informers } from "../../core/client/informer-factory.ts";
import { lookup } from "../../core/client/lookup.ts";
import * as refs from "../../core/client/resources.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { KeptConnections } from "../../core/net/kept-connections.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import type { Registry } from "../../core/registry/registry.ts";
import type { NodeProxyDeps } from "../../core/server/node-proxy/backend.ts";
import { objectVersions } from "../../core/server/object-versions.ts";
import type { ApiServerArgs } from "../apiserver-args.ts";
import { reviewServer } from "../authentication.ts";
import { ConfigError, fromFile, requiredText } from "../config/config.ts";
import { followWebhookUsers } from "../kubeconfig-file.ts";
import type { Permission } from "./permission.ts";

interface Options extends Pick<Permission, "authorizer" | "resolver"> {
  readonly args: ApiServerArgs;
  /** Feature gates that are off by default and were switched on, of which there is work: see gatesWithTheirResources. */
  readonly gates: ReadonlySet<string>;
  readonly registry: Registry;
  readonly client: Client;
  readonly informers: Informers;
  readonly dialer: NodeProxyDeps["dialer"];
  readonly kept: KeptConnections;
  readonly proxyTo: WebhookDeps["proxyTo"];
  readonly self: WebhookDeps["self"];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface Admission {
  readonly chain: AdmissionChain;
  /** What webhooks are found and asked with, also those that convert objects. */
  readonly webhooks: WebhookDeps;
}

/** Throws for settings that name what there is not. */
export function admissionOf({ args, gates, registry, client, informers, authorizer, resolver, dialer, kept, proxyTo, self, clock, random, log, metrics }: Options): Admission {
  const resourcesOf = ({ group, version, kind }: GroupVersionKind): ResourceRow[] => registry.rows().filter((row) => row.group === group && row.version === version && row.kind === kind);
  const namespaces = lookup(informers.of(refs.NAMESPACES), client.resource(refs.NAMESPACES));
  const versions = objectVersions(registry);
  const conditions = conditionMeter(metrics);
  const webhooks: WebhookDeps = {
    mutating: informers.of(refs.MUTATING_WEBHOOK_CONFIGURATIONS), validating: informers.of(refs.VALIDATING_WEBHOOK_CONFIGURATIONS), endpointSlices: informers.of(refs.ENDPOINT_SLICES),
    namespaces, services: lookup(informers.of(refs.SERVICES), client.resource(refs.SERVICES)),
    versions, dialer, kept, proxyTo, self, authorizer, clock, random, meter: webhookMeter(metrics), conditionMeter: conditions, log: log.with({ part: "admission webhooks" }),
  };
  const settings = settingsOf(args);
  const policies = { client, namespaces, versions, authorizer, clock, conditionMeter: conditions, resourceOf: (kind: GroupVersionKind) => rowOfKind(registry.rows(), kind) };
  const plugins = admissionPlugins({
    certifiesPods: gates.has("PodCertificateRequest"), groupsPods: gates.has("GenericWorkload"), preemptsGroups: gates.has("WorkloadAwarePreemption"), informers, client,
    authorizer, escalationGuard: escalationGuard(authorizer, resolver, clock), clock, random, resourcesOf, metrics, reviewServer, ...settings,
    webhooks: [
      mutatingPolicies({ ...policies, policies: informers.of(refs.MUTATING_ADMISSION_POLICIES), bindings: informers.of(refs.MUTATING_ADMISSION_POLICY_BINDINGS), mutationMeter: mutationMeter(metrics) }),
      mutatingWebhooks({ ...webhooks, users: usersFor("MutatingAdmissionWebhook", settings, clock) }),
      validatingPolicies({ ...policies, policies: informers.of(refs.VALIDATING_ADMISSION_POLICIES), bindings: informers.of(refs.VALIDATING_ADMISSION_POLICY_BINDINGS), meter: policyMeter(metrics) }),
      validatingWebhooks({ ...webhooks, users: usersFor("ValidatingAdmissionWebhook", settings, clock) }),
    ],
  });
  return { chain: admissionChain(plugins, admissionMeter(metrics, clock)), webhooks };
}

/** As whom the webhooks of a plug-in are asked. */
function usersFor(plugin: string, { configurations }: Partial<AdmissionDeps>, clock: Clock): WebhookUsers | undefined {
  try {
    const path = webhookKubeconfig(configurations?.get(plugin));
    return path === undefined ? undefined : followWebhookUsers(path, clock);
  } catch (cause) {
    throw new ConfigError(`--admission-control-config-file: ${plugin}: ${(cause as Error).message}`, { cause });
  }
}

function settingsOf(args: ApiServerArgs): Partial<AdmissionDeps> {
  const [notReadySeconds, unreachableSeconds] = [args.integer("default-not-ready-toleration-seconds"), args.integer("default-unreachable-toleration-seconds")];
  const file = args.text("admission-control-config-file");
  return {
    enabled: args.list("enable-admission-plugins"), disabled: args.list("disable-admission-plugins"),
    tolerationSeconds: { ...(notReadySeconds === undefined ? {} : { notReadySeconds }), ...(unreachableSeconds === undefined ? {} : { unreachableSeconds }) },
    ...(file === undefined ? {} : { configurations: fromFile("admission-control-config-file", file, (text) => admissionConfiguration(text, (path) => requiredText(resolve(dirname(file), path)))) }),
  };
}
