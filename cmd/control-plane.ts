/**
 * The control plane of one server, in data-flow order:
 *
 *   store → watch cache → registry → authn, authz, admission → handler → HTTPS
 *   then, as clients of the handler: bootstrap objects, controllers, scheduler
 */
import type { KeyObject } from "node:crypto";
import { dirname, resolve } from "node:path";
import { admissionMeter, policyMeter, webhookMeter } from "../core/admission/admission-metrics.ts";
import { admissionChain } from "../core/admission/chain.ts";
import { admissionConfiguration } from "../core/admission/configuration.ts";
import { type AdmissionDeps, admissionPlugins } from "../core/admission/plugins.ts";
import { mutatingPolicies } from "../core/admission/policy/mutating.ts";
import { validatingPolicies } from "../core/admission/policy/validating.ts";
import { conversionBy } from "../core/admission/webhook/conversion.ts";
import { mutatingWebhooks, validatingWebhooks } from "../core/admission/webhook/webhook.ts";
import type { Descriptions } from "../core/api/openapi/schema.ts";
import type { GroupVersionKind } from "../core/api/meta/gvk.ts";
import type { UserInfo } from "../core/api/request/user.ts";
import { builtInResources } from "../core/api/schema/resources.ts";
import { authenticatorChain } from "../core/authn/authn.ts";
import { bearerTokenAuthenticator, tokenUnion } from "../core/authn/bearer-token.ts";
import { bootstrapTokenAuthenticator } from "../core/authn/bootstrap-token.ts";
import { legacyTokenUse } from "../core/authn/legacy-token-use.ts";
import { JWKS_PATH, jsonWebKeySet, OPENID_CONFIG_PATH, openIdConfiguration } from "../core/authn/openid.ts";
import { requestHeaderAuthenticator } from "../core/authn/request-header.ts";
import { serviceAccountTokenAuthenticator } from "../core/authn/service-account.ts";
import { encodeLegacyClaims } from "../core/authn/service-account-claims.ts";
import { staticTokenAuthenticator } from "../core/authn/static-token.ts";
import { tokenIssuer } from "../core/authn/token-issuer.ts";
import { revokedNodes } from "../core/authn/revoked-nodes.ts";
import { certificateAuthenticator } from "../core/authn/x509.ts";
import { bootstrapPolicy } from "../core/authz/bootstrap-policy.ts";
import { escalationGuard } from "../core/authz/escalation.ts";
import { impersonate, impersonationOf } from "../core/authz/impersonate.ts";
import { nodeAuthorizer } from "../core/authz/node.ts";
import { rbacAuthorizer, ruleResolver } from "../core/authz/rbac.ts";
import { ensureBootstrapPolicy } from "../core/authz/reconcile-policy.ts";
import { type AccessReviewKind, evaluateReview } from "../core/authz/reviews.ts";
import { eventWriter } from "../core/client/events.ts";
import { informerFactory } from "../core/client/informer-factory.ts";
import { lookup } from "../core/client/lookup.ts";
import type { ResourceRef } from "../core/client/client.ts";
import { clientOver } from "../core/client/resource-client.ts";
import * as refs from "../core/client/resources.ts";
import type { Transport } from "../core/client/transport.ts";
import { allControllers } from "../core/controllers/all.ts";
import { dnsEndpoints } from "../core/dns/dns-endpoints.ts";
import { aborted } from "../core/lifecycle/aborted.ts";
import { type Clock, timestamp } from "../core/lifecycle/clock.ts";
import type { Random } from "../core/lifecycle/random.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import { formatIp, nthAddress, parseCidr } from "../core/net/cidr.ts";
import { httpsServer } from "../core/net/http-server.ts";
import { KeptConnections } from "../core/net/kept-connections.ts";
import type { Log } from "../core/observe/log.ts";
import { type Metrics, metricsRegistry } from "../core/observe/metrics.ts";
import { buildMetrics, processMetrics } from "../core/observe/process-metrics.ts";
import { FRONT_PROXY, SERVING_NAME } from "../core/pki/identities.ts";
import { signJwt, verifyingKeys } from "../core/pki/jwt.ts";
import { openPki, type Pki } from "../core/pki/pki.ts";
import { certificateRotation } from "../core/pki/rotate.ts";
import { crdController } from "../core/registry/apiextensions/crd-controller.ts";
import type { APIService } from "../core/registry/apiregistration/api-service.ts";
import { convert } from "../core/registry/conversions.ts";
import type { Claims } from "../core/registry/core/service/allocator/claims.ts";
import { registryDefinitions } from "../core/registry/definitions.ts";
import { WatchCache } from "../core/registry/generic/watch-cache.ts";
import { Registry } from "../core/registry/registry.ts";
import { SchedulingExplainer } from "../core/scheduler/explainer.ts";
import { scheduler } from "../core/scheduler/scheduler.ts";
import { aggregator } from "../core/server/aggregation/aggregator.ts";
import { type Answer, raw } from "../core/server/answer.ts";
import { ensureBootstrapObjects } from "../core/server/bootstrap.ts";
import { discoveryPaths } from "../core/server/discovery.ts";
import { apiHandler, type PathHandler } from "../core/server/handler.ts";
import { type HealthCheck, healthPaths, metricsPath, versionPath } from "../core/server/health.ts";
import { httpFront } from "../core/server/http.ts";
import { inProcessTransport } from "../core/server/in-process.ts";
import { kubernetesEndpoints } from "../core/server/kubernetes-endpoints.ts";
import { objectVersions } from "../core/server/object-versions.ts";
import { featureGateProblem, featureMetrics } from "../core/server/feature-gates.ts";
import { indexPaths } from "../core/server/index-paths.ts";
import { openApiPaths } from "../core/server/openapi.ts";
import { METRICS_ROWS, metricsHandlers } from "../core/server/metrics-api/metrics-api.ts";
import type { NodeProxyDeps } from "../core/server/node-proxy/backend.ts";
import { nodeProxyHandlers } from "../core/server/special/node-proxy.ts";
import { ensureJoinObjects } from "../core/server/join-objects.ts";
import { specialHandlers } from "../core/server/special/special.ts";
import { runtimeConfigProblem } from "../core/server/runtime-config.ts";
import { podResourceMetrics } from "../core/server/pod-resource-metrics.ts";
import { storageMetrics } from "../core/server/storage-metrics.ts";
import { VERBS } from "../core/server/verbs/all.ts";
import { zpages } from "../core/server/zpages.ts";
import type { Store } from "../storage/store.ts";
import { type ApiServerArgs, apiServerArgs } from "./apiserver-args.ts";
import { auditOf } from "./audit.ts";
import { fairnessOf } from "./fairness.ts";
import { healthChecks } from "./health-checks.ts";
import { shownFlags } from "./shown-flags.ts";
import { tracingOf } from "./tracing.ts";
import { buildInfo, descriptionsPath } from "./assets.ts";
import { ConfigError, fromFile, requiredText } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { criticalSettings, sharedSettings } from "./cluster-settings.ts";
import { openDatastore } from "./datastore.ts";
import { explainSchedulingPath } from "./explain-scheduling.ts";
import { authenticationSettings, extraCas, reviewServer, serviceAccountSettings } from "./authentication.ts";
import { authorizationSettings } from "./authorization.ts";
import { openEncryption } from "./encryption.ts";
import { leading, type LeadingOptions } from "./leading.ts";
import { applyMetricsSettings } from "./metrics-settings.ts";
import type { Paths } from "./paths.ts";
import { controllerSettings } from "./controller-settings.ts";
import { schedulerSetup } from "./scheduler-settings.ts";
import { shareKeys } from "./shared-keys.ts";
import { snapshotPath, type SnapshotOptions, takeSnapshot } from "./snapshot-path.ts";
import { snapshotSchedule } from "./snapshot-schedule.ts";
import { clusterSecret, clusterToken, givenToken } from "./token-file.ts";
import { storageSize } from "./storage-size.ts";
import { serverTunnel } from "./tunnel.ts";
import { ingressSecrets } from "./ingress-secrets.ts";
import { gitVersion, versionInfo } from "./version.ts";
import type { ReservedPort } from "../core/controllers/servicelb/plan.ts";
import { VXLAN_PORT } from "../node/network/vxlan.ts";

/** The identity in whose name this process does what upstream's API server does to itself. */
const LOOPBACK: UserInfo = { name: "system:apiserver", groups: ["system:masters"] };
/** Longer than a write may take, admission webhooks (30 s) included. */
const CLAIM_SECONDS = 60;
/** The common name this server shows to servers behind it. */
const OUR_PROXY = "system:auth-proxy";
const ISSUER_PATH = "https://kubernetes.default.svc";

export interface ControlPlaneOptions {
  readonly settings: Settings;
  readonly paths: Paths;
  /** Of this machine. */
  readonly node: { readonly name: string; readonly ips: readonly string[] };
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Ends waiting for the datastore. */
  readonly signal: AbortSignal;
}

export interface ControlPlane {
  readonly pki: Pki;
  readonly parts: readonly Runnable[];
  /** A client in this process with its own identity. */
  transport(user: UserInfo, userAgent: string): Transport;
  /** https://address:port of this server. */
  readonly url: string;
  /** After all parts have ended. */
  close(): Promise<void>;
}

/** Throws ConfigError if there is a problem. */
function refuseUnless(name: string, problem: string | undefined): void {
  if (problem !== undefined) throw new ConfigError(`--kube-apiserver-arg ${name}: ${problem}`);
}

export async function controlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { settings, paths, node, clock, random, log, metrics, signal } = options;
  const serviceCidr = parseCidr(settings.serviceCidr.split(",")[0]!)!; // of the primary family
  const apiServiceIp = formatIp(nthAddress(serviceCidr, 1n));
  const advertise = { address: settings.advertiseAddress ?? node.ips[0]!, port: settings.httpsListenPort };
  const url = `https://${advertise.address.includes(":") ? `[${advertise.address}]` : advertise.address}:${advertise.port}`;
  const args = apiServerArgs(settings.kubeApiserverArg);
  applyMetricsSettings(args, metrics);
  for (const [name, check] of [["feature-gates", featureGateProblem], ["runtime-config", runtimeConfigProblem]] as const)
    for (const one of args.list(name)) refuseUnless(name, check(one));
  featureMetrics(metrics);
  const { store: beneath, isShared, trouble, onFull } = await openDatastore({ settings, path: paths.store, clock, log, signal });
  const encryption = await openEncryption({
    beneath, isShared, clock, random, metrics, log: log.with({ part: "encryption" }), on: settings.secretsEncryption, own: paths.encryption,
    given: args.text("encryption-provider-config"), reload: args.boolean("encryption-provider-config-automatic-reload", false),
  });
  const { store } = encryption;
  const given = givenToken(settings);
  const secret = await clusterSecret({ path: paths.token, given, random });
  const releasedMs = Date.parse(buildInfo().date);
  if (isShared) await shareKeys({ store, dir: paths.tls, secret, given, settings: criticalSettings(settings), clock, random, log, releasedMs });
  const pki = await openPki({
    dir: paths.tls, clock, random, log, releasedMs,
    names: () => ({ nodeName: node.name, nodeIps: node.ips, serviceIps: [apiServiceIp], clusterDomain: settings.clusterDomain, extra: [...settings.tlsSan, ...(settings.advertiseAddress ? [settings.advertiseAddress] : [])] }),
  });
  const joinSecret = await clusterToken({ path: paths.token, given: secret, caPem: pki.authority("server-ca").bundlePem, random });

  const snapshots: SnapshotOptions = { store: beneath, paths, secret: joinSecret, settings: criticalSettings(settings), random };

  const cache = new WatchCache(store);
  const loopbackClient = () => clientOver(transport(LOOPBACK, "kube-apiserver"));
  const informers = informerFactory({ client: loopbackClient(), clock, random, log: log.with({ part: "informers" }) });
  const registry: Registry = new Registry([...builtInResources.rows(), ...METRICS_ROWS], registryDefinitions({ serviceCidrs: settings.serviceCidr.split(","), nodePortRange: settings.serviceNodePortRange, storeOf: (group, plural) => registry.storeOf(group, plural), random, claims: claimsOf(store, cache, signal) }), { store, cache, clock, random, convert });

  const lookups = {
    serviceAccounts: lookup(informers.of(refs.SERVICE_ACCOUNTS), loopbackClient().resource(refs.SERVICE_ACCOUNTS)),
    pods: lookup(informers.of(refs.PODS), loopbackClient().resource(refs.PODS)),
    secrets: lookup(informers.of(refs.SECRETS), loopbackClient().resource(refs.SECRETS)),
    nodes: lookup(informers.of(refs.NODES), loopbackClient().resource(refs.NODES)),
  };
  const keys = serviceAccountSettings(args, { ...pki.serviceAccountKeys, issuer: `${ISSUER_PATH}.${settings.clusterDomain}` });
  const { apiAudiences, issuers } = keys;
  const issuer = issuers[0]!;
  const verifying = verifyingKeys(keys.verifying);
  const authentication = authenticationSettings({ args, apiAudiences, issuers, clock, metrics, log: log.with({ part: "authentication" }) });
  const tokens = tokenUnion([
    ...authentication.before,
    staticTokenAuthenticator([{ token: joinSecret, user: { name: "system:bootstrap:token", groups: ["system:bootstrappers", "system:bootstrappers:coracle"] } }], apiAudiences),
    serviceAccountTokenAuthenticator({ ...lookups, keys: () => verifying, issuers, apiAudiences, clock, metrics, markUsed: legacyTokenUse({ secrets: loopbackClient().resource(refs.SECRETS), clock, log }) }),
    bootstrapTokenAuthenticator({ secrets: lookups.secrets, apiAudiences, clock, log }),
    ...authentication.after,
  ]);
  const [clientCas, proxyCas] = [extraCas(args, "client-ca-file"), extraCas(args, "requestheader-client-ca-file")];
  const proxyNames = [OUR_PROXY, ...args.list("requestheader-allowed-names")];
  const authenticator = authenticatorChain({
    anonymous: authentication.anonymous,
    log,
    authenticators: [
      requestHeaderAuthenticator({ roots: proxyCas.with(() => pki.authority("request-header-ca").bundle), clock, allowedNames: proxyNames }),
      certificateAuthenticator({ roots: clientCas.with(() => pki.authority("client-ca").bundle), clock, revokedNodes: revokedNodes(informers.of(refs.CONFIG_MAPS)) }),
      bearerTokenAuthenticator(tokens, apiAudiences),
    ],
  });

  const rbacInformers = { roles: informers.of(refs.ROLES), roleBindings: informers.of(refs.ROLE_BINDINGS), clusterRoles: informers.of(refs.CLUSTER_ROLES), clusterRoleBindings: informers.of(refs.CLUSTER_ROLE_BINDINGS) };
  const resolver = ruleResolver(rbacInformers);
  const policy = bootstrapPolicy();
  const authorization = authorizationSettings({
    args, clock, metrics, log: log.with({ part: "authorization" }), rbac: rbacAuthorizer(resolver),
    node: nodeAuthorizer({
      pods: informers.of(refs.PODS), persistentVolumes: informers.of(refs.PERSISTENT_VOLUMES), volumeAttachments: informers.of(refs.VOLUME_ATTACHMENTS), resourceSlices: informers.of(refs.RESOURCE_SLICES), servesWith: ingressSecrets(informers),
      nodeRules: policy.clusterRoles.find(({ metadata }) => metadata.name === "system:node")?.rules ?? [],
    }),
  });
  const { authorizer } = authorization;

  let bootstrapped = false;
  let customResourcesServed = false;
  const known = (...all: readonly { readonly synced: boolean }[]): boolean => all.every(({ synced }) => synced);
  const checks: HealthCheck[] = [
    ...healthChecks({
      storeTrouble: trouble, isStopping: () => server.stopping.aborted,
      steps: {
        store: () => cache.revision > 0, bootstrap: () => bootstrapped, customResources: () => customResourcesServed,
        informers: () => known(...Object.values(rbacInformers)), webhooks: () => known(webhooks.mutating, webhooks.validating),
        fairness: () => known(informers.of(refs.FLOW_SCHEMAS), informers.of(refs.PRIORITY_LEVEL_CONFIGURATIONS)), aggregation: () => known(informers.of(refs.API_SERVICES)),
      },
    }),
    ...(encryption.trouble ? [{ name: "kms-providers", endpoints: ["livez", "readyz"] as const, check: encryption.trouble }] : []),
  ];

  const endpoints = kubernetesEndpoints({ client: loopbackClient(), clock, random, log, nodeName: node.name, advertise });
  const tunnel = serverTunnel({ nodeName: node.name, serverCount: () => endpoints.serverCount(), informers, authenticator, stopping: () => server.stopping, clock, random, metrics, log: log.with({ part: "tunnel" }) });
  const nodes: NodeProxyDeps = {
    dialer: tunnel.dialer,
    kubeletTls: () => ({ ca: pki.authority("server-ca").bundlePem, cert: pki.leaf("client-kube-apiserver").certificatePem, key: pki.leaf("client-kube-apiserver").keyPem }),
  };
  const nodeProxy = nodeProxyHandlers(nodes);
  const metricsApi = metricsHandlers(nodes);

  const kept = new KeptConnections(clock); // to webhooks and to servers behind this one
  const webhooks = {
    mutating: informers.of(refs.MUTATING_WEBHOOK_CONFIGURATIONS), validating: informers.of(refs.VALIDATING_WEBHOOK_CONFIGURATIONS), endpointSlices: informers.of(refs.ENDPOINT_SLICES),
    namespaces: lookup(informers.of(refs.NAMESPACES), loopbackClient().resource(refs.NAMESPACES)), services: lookup(informers.of(refs.SERVICES), loopbackClient().resource(refs.SERVICES)),
    versions: objectVersions(registry), dialer: tunnel.dialer, kept, authorizer, clock, random, meter: webhookMeter(metrics), log: log.with({ part: "admission webhooks" }),
  };
  const policyDeps = {
    client: loopbackClient(), namespaces: webhooks.namespaces, versions: webhooks.versions, authorizer, clock,
    resourceOf: ({ group, version, kind }: GroupVersionKind) => registry.rows().find((row) => row.group === group && row.version === version && row.kind === kind),
  };
  const policies = {
    mutating: { ...policyDeps, policies: informers.of(refs.MUTATING_ADMISSION_POLICIES), bindings: informers.of(refs.MUTATING_ADMISSION_POLICY_BINDINGS) },
    validating: { ...policyDeps, policies: informers.of(refs.VALIDATING_ADMISSION_POLICIES), bindings: informers.of(refs.VALIDATING_ADMISSION_POLICY_BINDINGS), meter: policyMeter(metrics) },
  };

  const scheduling = schedulerSetup(settings, clock);
  const controlling = controllerSettings(settings.kubeControllerManagerArg);
  const explainer = new SchedulingExplainer({ informers, profiles: scheduling.profiles, clock });
  const apiServices = refs.API_SERVICES as ResourceRef<APIService>;
  const aggregation = aggregator({
    registry, apiServices: informers.of(apiServices), resource: loopbackClient().resource(apiServices), serviceCopies: informers.of(refs.SERVICES), services: webhooks.services, endpointSlices: webhooks.endpointSlices,
    dialer: tunnel.dialer, kept, clientTls: () => ({ cert: pki.leaf(FRONT_PROXY.name).certificatePem, key: pki.leaf(FRONT_PROXY.name).keyPem }), clock, random, metrics, log: log.with({ part: "aggregation" }),
  });

  const fairness = fairnessOf(args, { client: loopbackClient(), informers, registry: () => registry, clock, metrics, log: log.with({ part: "fairness" }) });
  const { tracer, parts: tracingParts } = tracingOf(args, { instance: node.name, env: process.env, clock, random, log: log.with({ part: "traces" }) });
  const slis = metricsRegistry();
  storageMetrics(metrics, registry);
  if (!isShared) storageSize(metrics, paths.store);
  processMetrics(metrics, clock);
  buildMetrics(metrics, versionInfo());
  const { audit, parts: auditParts } = auditOf(args, { clock, metrics, log: log.with({ part: "audit" }) });

  const handler = apiHandler({
    aggregation, fairness: fairness.enter, audit, tracer,
    registry, cache, authenticator, authorizer, clock, random, metrics,
    log: log.with({ part: "server" }),
    async impersonate(attributes, request) {
      const wanted = impersonationOf(request.headers());
      return wanted ? impersonate(wanted, attributes, authorizer) : attributes.user;
    },
    admission: admissionChain(admissionPlugins({
      informers, client: loopbackClient(), authorizer, escalationGuard: escalationGuard(authorizer, resolver), clock, random, webhooks: [mutatingPolicies(policies.mutating), mutatingWebhooks(webhooks), validatingPolicies(policies.validating), validatingWebhooks(webhooks)],
      resourcesOf: ({ group, version, kind }) => registry.rows().filter((row) => row.group === group && row.version === version && row.kind === kind),
      metrics, reviewServer, ...admissionSettings(args),
    }), admissionMeter(metrics, clock)),
    paths: [
      healthPaths(checks, slis), zpages({ flags: shownFlags(settings), version: versionInfo(), clock }), versionPath(versionInfo()), metricsPath(metrics), podResourceMetrics(() => informers.of(refs.PODS).list()), discoveryPaths(registry, `${advertise.address}:${advertise.port}`, aggregation),
      openApiPaths({ clock, registry, version: gitVersion(), descriptions: loadDescriptions, foreign: aggregation }),
      ...fairness.paths, indexPaths({ registry, foreign: aggregation, checks }),
      openIdPaths({ issuer, advertise, jwksUri: keys.jwksUri, keys: () => keys.verifying }), explainSchedulingPath(explainer),
      snapshotPath(snapshots),
    ],
    special: specialHandlers({
      tokens: tokenIssuer({ ...lookups, key: () => keys.signing, issuer, apiAudiences, clock, random, expirationSecondsMax: keys.expirationSecondsMax ?? 0, extendExpiration: keys.extendExpiration }),
      tokenReviews: { tokens, apiAudiences },
      review: async ({ kind, object, namespace, user }) => (await evaluateReview(kind as AccessReviewKind, object as never, authorizer, { user, namespace })) as never,
      connections: (info) => nodeProxy(info) ?? metricsApi(info),
      components: [...["scheduler", "controller-manager"].map((name) => ({ name, check: () => undefined })), { name: "etcd-0", check: trouble }], // the first two live and die with this process
    }),
  }, VERBS);

  function transport(user: UserInfo, userAgent: string): Transport {
    return inProcessTransport((request) => handler(request), { user, userAgent });
  }

  const front = httpFront({ handler, clock, log: log.with({ part: "server" }), stopping: () => server.stopping, describe: undefined });
  const server = httpsServer({
    host: settings.bindAddress, port: settings.httpsListenPort, portFlag: "--https-listen-port",
    tls: () => {
      const { keyPem, certificatePem } = pki.leaf(SERVING_NAME);
      return { key: keyPem, cert: certificatePem, clientCas: [pki.authority("client-ca").bundlePem, pki.authority("request-header-ca").bundlePem, ...clientCas.pem, ...proxyCas.pem] };
    },
    handler: tunnel.handler(front.request), upgrade: front.upgrade, log: log.with({ part: "https" }), clock,
  });

  const enabled = (part: string): boolean => !settings.disable.includes(part);
  const events = eventWriter({ client: loopbackClient(), clock, random, log });
  onFull((message) => events.from({ component: "coracle", host: node.name }).event({ kind: "Node", apiVersion: "v1", name: node.name, uid: node.name }, "Warning", "DatastoreFull", message));
  const schedulerClient = clientOver(transport({ name: "system:kube-scheduler", groups: ["system:authenticated"] }, "kube-scheduler"));
  const controllerClient = clientOver(transport(LOOPBACK, "kube-controller-manager"));
  const leader: LeadingOptions = { isShared, nodeName: node.name, client: controllerClient, informers, events, clock, random, metrics, log };
  const controllers = leading(leader, "kube-controller-manager", ({ informers, metrics }) => [...(enabled("controllers") ? allControllers({
    ...controlling, client: controllerClient, informers, events, clock, random, metrics,
    log: log.with({ part: "controllers" }),
    rootCa: () => pki.authority("server-ca").bundlePem,
    nodeIpam: { clusterCidrs: settings.clusterCidr.split(","), serviceCidrs: settings.serviceCidr.split(",") },
    approveServing: true, localStorage: enabled("local-storage"), ingress: enabled("ingress"), serviceLb: enabled("servicelb") ? { reserved: reservedPorts(settings) } : undefined,
    tokenFor: ({ metadata: { name, namespace = "", uid } }, secret) => signJwt(encodeLegacyClaims({ namespace, secretName: secret.metadata.name, serviceAccount: { name, uid } }), keys.signing),
    authorityFor: (signer) => (signer === "kubernetes.io/kubelet-serving" ? pki.authority("server-ca") : signer.startsWith("kubernetes.io/kube-apiserver-client") ? pki.authority("client-ca") : undefined),
  }) : []), ...(enabled("dns") ? [dnsEndpoints({ client: loopbackClient(), informers, clock, log: log.with({ part: "dns" }) })] : [])]);
  const schedulers = enabled("scheduler") ? leading({ ...leader, client: schedulerClient }, "kube-scheduler", (deps) => [scheduler({ ...deps, client: schedulerClient, events, clock, random, log: log.with({ part: "scheduler" }), explainer, ...scheduling })]) : [];

  return {
    pki,
    transport,
    url,
    parts: [
      { name: "watch cache", run: (signal, ready) => cache.run(signal, ready, log) },
      ...encryption.parts,
      ...authentication.parts,
      ...authorization.parts,
      crdController({ registry, remoteConversion: (crd) => conversionBy(crd, webhooks), clock, random, log: log.with({ part: "custom resources" }) }),
      { name: "custom resources are served", run: (signal, ready) => { customResourcesServed = true; ready(); return aborted(signal); } },
      informers,
      ...auditParts, ...tracingParts,
      server,
      certificateRotation({ pki, clock, log, onRenewed: () => server.reloadCertificates() }),
      once("bootstrap", async (signal) => {
        const client = loopbackClient();
        await ensureBootstrapPolicy(client, { signal, log });
        await ensureBootstrapObjects(client, {
          serviceCidrs: settings.serviceCidr.split(","), apiServiceIp, apiServicePort: 443, apiServerPort: advertise.port, clusterDns: settings.clusterDns, localStorage: enabled("local-storage") && enabled("controllers"), ingress: enabled("ingress") && enabled("controllers"),
          clientCa: [pki.authority("client-ca").bundlePem, ...clientCas.pem].join("\n"), requestHeaderCa: [pki.authority("request-header-ca").bundlePem, ...proxyCas.pem].join("\n"), proxyNames, today: timestamp(clock.nowMs()).slice(0, 10),
        }, signal);
        await ensureJoinObjects(client, { server: url, serverCa: pki.authority("server-ca").bundlePem, clientCa: pki.authority("client-ca").bundlePem, settings: sharedSettings(settings) }, signal);
        bootstrapped = true;
      }),
      endpoints,
      events,
      ...fairness.parts,
      ...aggregation.parts,
      ...controllers,
      ...schedulers,
      ...snapshotSchedule({ settings, directory: settings.snapshotDir ?? paths.snapshots, take: () => takeSnapshot(snapshots), clock, log: log.with({ part: "snapshots" }) }),
    ],
    async close() {
      await store.close();
      encryption.close();
    },
  };
}

/** What the nodes themselves are reached at: no Service of type LoadBalancer gets it. */
function reservedPorts({ httpsListenPort, kubeletPort }: Settings): ReservedPort[] {
  return [{ protocol: "TCP", port: httpsListenPort, why: "the API server's" }, { protocol: "TCP", port: kubeletPort, why: "the kubelet's" }, { protocol: "UDP", port: VXLAN_PORT, why: "the pod network's" }];
}

function admissionSettings(args: ApiServerArgs): Partial<AdmissionDeps> {
  const [notReadySeconds, unreachableSeconds] = [args.integer("default-not-ready-toleration-seconds"), args.integer("default-unreachable-toleration-seconds")];
  const file = args.text("admission-control-config-file");
  return {
    enabled: args.list("enable-admission-plugins"), disabled: args.list("disable-admission-plugins"),
    tolerationSeconds: { ...(notReadySeconds === undefined ? {} : { notReadySeconds }), ...(unreachableSeconds === undefined ? {} : { unreachableSeconds }) },
    ...(file === undefined ? {} : { configurations: fromFile("admission-control-config-file", file, (text) => admissionConfiguration(text, (path) => requiredText(resolve(dirname(file), path)))) }),
  };
}

/** A part that does one thing at the start. */
function once(name: string, work: (signal: AbortSignal) => Promise<void>): Runnable {
  return {
    name,
    async run(signal, ready) {
      await work(signal);
      ready();
      await aborted(signal);
    },
  };
}

/** Service addresses and node ports that are being given out: no other server may give them out meanwhile. */
function claimsOf(store: Store, cache: WatchCache, signal: AbortSignal): Claims | undefined {
  return store.claim && { claim: async (name) => await store.claim?.(`/claims/services/${name}`, { ttlSeconds: CLAIM_SECONDS }), fresh: () => cache.fresh(signal) };
}

async function loadDescriptions(): Promise<Descriptions> {
  const path = descriptionsPath();
  if (!path) return {};
  return JSON.parse(Buffer.from(Bun.zstdDecompressSync(await Bun.file(path).bytes())).toString()) as Descriptions;
}

/** Lets others verify our ServiceAccount tokens. */
function openIdPaths({ issuer, advertise, jwksUri, keys }: { readonly issuer: string; readonly jwksUri: string | undefined; readonly advertise: { readonly address: string; readonly port: number }; readonly keys: () => readonly KeyObject[] }): PathHandler {
  return ({ path }): Answer | undefined => {
    const found = path === OPENID_CONFIG_PATH ? openIdConfiguration({ issuer, jwksUri: jwksUri ?? `https://${advertise.address}:${advertise.port}${JWKS_PATH}`, keys: keys() })
      : path === JWKS_PATH ? jsonWebKeySet(keys()) : undefined;
    return found && raw(found.body, found.contentType, 200, { "cache-control": found.cacheControl });
  };
}
