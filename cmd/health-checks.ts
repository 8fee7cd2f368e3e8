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

const HOOKS: Readonly<Record<Exclude<keyof StartSteps, "registration">, readonly string[]>> = {
  store: ["storage-readiness"],
  informers: ["generic-apiserver-start-informers"],
  webhooks: ["start-apiserver-admission-initializer"],
  fairness: ["priority-and-fairness-config-consumer", "priority-and-fairness-filter"],
  customResources: ["start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced"],
  bootstrap: [
    "rbac/bootstrap-roles", "bootstrap-controller", "start-system-namespaces-controller", "start-service-ip-repair-controllers", "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer", "start-cluster-authentication-info-controller", "start-kubernetes-service-cidr-controller",
  ],
  aggregation: [
    "start-kube-aggregator-informers", "apiservice-registration-controller", "apiservice-status-local-available-controller", "apiservice-status-remote-available-controller", "apiservice-discovery-controller",
    "kube-apiserver-autoregistration", "apiservice-openapi-controller", "apiservice-openapiv3-controller",
  ],
};

interface OwnChecks {
  readonly steps: StartSteps;
  /** Why the store cannot be used. */
  readonly storeTrouble: () => ReturnType<HealthCheck["check"]>;
  readonly isStopping: () => boolean;
  /** It may still be starting: what is not finished does not make it dead. */
  readonly inGrace?: () => boolean;
}

export function healthChecks({ steps, storeTrouble, isStopping, inGrace = () => false }: OwnChecks): HealthCheck[] {
  const both = ["livez", "readyz"] as const;
  const step = (name: string, done: Step): HealthCheck => ({ name, endpoints: both, check: (endpoint) => (done() || (endpoint === "livez" && inGrace()) ? undefined : "not finished") });
  return [
    { name: "ping", endpoints: both, check: () => undefined },
    { name: "log", endpoints: both, check: () => undefined },
    { name: "loopback-serving-certificate", endpoints: ["livez"], check: () => undefined }, // it talks to itself without one
    { name: "etcd", endpoints: both, check: async () => (steps.store() ? await storeTrouble() : "the store has not been read yet") },
    { name: "informer-sync", endpoints: ["readyz"], check: () => (steps.informers() ? undefined : "informers not synced") },
    ...(Object.keys(HOOKS) as (keyof typeof HOOKS)[]).flatMap((key) => HOOKS[key].map((name) => step(`poststarthook/${name}`, steps[key]))),
    step("autoregister-completion", steps.registration),
    { name: "shutdown", endpoints: ["readyz"], check: () => (isStopping() ? "process is shutting down" : undefined) },
  ];
}
