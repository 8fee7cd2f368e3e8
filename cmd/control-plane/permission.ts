/** What callers may do: RBAC, the nodes' own rules, and whoever kube-apiserver's settings name. */
import { bootstrapPolicy } from "../../core/authz/bootstrap-policy.ts";
import type { Authorizer } from "../../core/authz/authorizer.ts";
import { nodeAuthorizer } from "../../core/authz/node.ts";
import { rbacAuthorizer, type RuleResolver, ruleResolver } from "../../core/authz/rbac.ts";
import type { Informers } from "../../core/client/informer-factory.ts";
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, PERSISTENT_VOLUMES, PODS, POD_CERTIFICATE_REQUESTS, RESOURCE_SLICES, ROLE_BINDINGS, ROLES, VOLUME_ATTACHMENTS } from "../../core/client/resources.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import type { ApiServerArgs } from "../apiserver-args.ts";
import { authorizationSettings } from "../authorization.ts";
import { ingressSecrets } from "../ingress-secrets.ts";

export interface Permission {
  readonly authorizer: Authorizer;
  readonly resolver: RuleResolver;
  /** All roles and bindings are known. */
  synced(): boolean;
  readonly parts: readonly Runnable[];
}

interface Options {
  readonly gates: ReadonlySet<string>;
  readonly args: ApiServerArgs;
  /** This server's, among several. */
  readonly serverId: string;
  readonly informers: Informers;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Throws ConfigError. */
export function permissionOf({ args, gates, serverId, informers, clock, log, metrics }: Options): Permission {
  const known = { roles: informers.of(ROLES), roleBindings: informers.of(ROLE_BINDINGS), clusterRoles: informers.of(CLUSTER_ROLES), clusterRoleBindings: informers.of(CLUSTER_ROLE_BINDINGS) };
  const resolver = ruleResolver(known);
  const { authorizer, parts } = authorizationSettings({
    args, serverId, clock, metrics, log: log.with({ part: "authorization" }), rbac: rbacAuthorizer(resolver),
    node: nodeAuthorizer({
      certificateRequests: gates.has("PodCertificateRequest") ? informers.of(POD_CERTIFICATE_REQUESTS) : undefined,
      pods: informers.of(PODS), persistentVolumes: informers.of(PERSISTENT_VOLUMES), volumeAttachments: informers.of(VOLUME_ATTACHMENTS), resourceSlices: informers.of(RESOURCE_SLICES), servesWith: ingressSecrets(informers),
      nodeRules: bootstrapPolicy(gates).clusterRoles.find(({ metadata }) => metadata.name === "system:node")?.rules ?? [],
    }),
  });
  return { authorizer, resolver, parts, synced: () => Object.values(known).every(({ synced }) => synced) };
}
