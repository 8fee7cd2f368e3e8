/**
 * The checks behind /livez and /readyz, under upstream's names: monitors and the conformance suite ask for them one by one. What upstream does in many
 * hooks after the start is done in few steps here, and several names tell of the same step.
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/{healthz,hooks}.go, pkg/controlplane, kube-aggregator/pkg/apiserver/apiserver.go
 */
import type { HealthCheck } from "../core/server/health.ts";

/** Whether a step of the start is behind us. */
type Step = () => boolean;

export interface StartSteps {
  /** The store has been read. */
  readonly store: Step;
  /** What requests are judged by is known: roles, webhooks. */
  readonly informers: Step;
  readonly webhooks: Step;
  readonly fairness: Step;
  readonly customResources: Step;
  /** The objects a cluster is born with are there. */
  readonly bootstrap: Step;
  readonly aggregation: Step;
  /** APIServices say what is served here. */
  readonly registration: Step;
}

/** Which step each hook tells of, in upstream's order. */
const HOOKS: readonly (readonly [name: string, step: Exclude<keyof StartSteps, "registration">])[] = [
  ["start-apiserver-admission-initializer", "webhooks"],
  ["generic-apiserver-start-informers", "informers"],
  ["priority-and-fairness-config-consumer", "fairness"],
  ["priority-and-fairness-filter", "fairness"],
  ["storage-object-count-tracker-hook", "store"],
  ["start-apiextensions-informers", "customResources"],
  ["start-apiextensions-controllers", "customResources"],
  ["crd-informer-synced", "customResources"],
  ["start-system-namespaces-controller", "bootstrap"],
  ["peer-endpoint-reconciler-controller", "bootstrap"],
  ["start-cluster-authentication-info-controller", "bootstrap"],
  ["start-kube-apiserver-identity-lease-controller", "bootstrap"],
  ["start-kube-apiserver-identity-lease-garbage-collector", "bootstrap"],
  ["storage-readiness", "store"],
  ["start-legacy-token-tracking-controller", "bootstrap"],
  ["start-service-ip-repair-controllers", "bootstrap"],
  ["rbac/bootstrap-roles", "bootstrap"],
  ["scheduling/bootstrap-system-priority-classes", "bootstrap"],
  ["priority-and-fairness-config-producer", "bootstrap"],
  ["bootstrap-controller", "bootstrap"],
  ["start-kubernetes-service-cidr-controller", "bootstrap"],
  ["aggregator-reload-proxy-client-cert", "aggregation"],
  ["start-kube-aggregator-informers", "aggregation"],
  ["apiservice-status-local-available-controller", "aggregation"],
  ["apiservice-status-remote-available-controller", "aggregation"],
  ["apiservice-registration-controller", "aggregation"],
  ["apiservice-discovery-controller", "aggregation"],
  ["kube-apiserver-autoregistration", "aggregation"],
  ["apiservice-openapi-controller", "aggregation"],
  ["apiservice-openapiv3-controller", "aggregation"],
];

/** The hook before the check that is no hook. */
const LAST_BEFORE_REGISTRATION = "kube-apiserver-autoregistration";

interface OwnChecks {
  readonly steps: StartSteps;
  /** Why the store cannot be used. */
  readonly storeTrouble: () => ReturnType<HealthCheck["check"]>;
  /** Why a key service cannot be used. Absent: there is none, and there will be none. It is no reason to end the process. */
  readonly keysTrouble?: (() => string | undefined) | undefined;
  readonly isStopping: () => boolean;
  /** It may still be starting: what is not finished does not make it dead. */
  readonly inGrace?: () => boolean;
}

export function healthChecks({ steps, storeTrouble, keysTrouble, isStopping, inGrace = () => false }: OwnChecks): HealthCheck[] {
  const both = ["livez", "readyz"] as const;
  const step = (name: string, done: Step): HealthCheck => ({ name, endpoints: both, check: (endpoint) => (done() || (endpoint === "livez" && inGrace()) ? undefined : "not finished") });
  const store = async (): Promise<string | undefined> => (steps.store() ? await storeTrouble() : "the store has not been read yet");
  return [
    { name: "ping", endpoints: both, check: () => undefined },
    { name: "log", endpoints: both, check: () => undefined },
    { name: "loopback-serving-certificate", endpoints: ["livez"], check: () => undefined }, // it talks to itself without one
    { name: "etcd", endpoints: both, check: store },
    { name: "etcd-readiness", endpoints: ["readyz"], check: store },
    ...(keysTrouble ? [{ name: "kms-providers", endpoints: ["healthz", "readyz"] as const, check: keysTrouble }] : []),
    { name: "informer-sync", endpoints: ["readyz"], check: () => (steps.informers() ? undefined : "informers not synced") },
    ...HOOKS.flatMap(([name, key]) => {
      const hook = step(`poststarthook/${name}`, steps[key]);
      return name === LAST_BEFORE_REGISTRATION ? [hook, step("autoregister-completion", steps.registration)] : [hook];
    }),
    { name: "shutdown", endpoints: ["readyz"], check: () => (isStopping() ? "process is shutting down" : undefined) },
  ];
}
