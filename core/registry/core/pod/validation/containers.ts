/** Containers: what all have, and what only init, main or ephemeral ones may. Source: kubernetes v1.36 pkg/apis/core/validation/validation.go validateContainers and its neighbours */
import { child, duplicate, type FieldError, forbidden, index, invalid, notFound, notSupported, required, tooMany } from "../../../../api/meta/field-error.ts";
import type { Container, ContainerPort, EphemeralContainer, PodSpec, Volume } from "../../../../api/gen/core.v1.ts";
import { portName, portNumber } from "../../../../api/meta/names.ts";
import { isDns1123Label, oneOf, problems } from "../../checks/values.ts";
import { isSidecar } from "../containers.ts";
import type { PodRules } from "../rules.ts";
import { validateEnv, validateEnvFrom } from "./env.ts";
import { validateHostPorts } from "./host.ts";
import { validateDevices, validateMounts } from "./mounts.ts";
import { validateLifecycle, validateProbes } from "./probes.ts";
import { validateContainerResources, validateResizePolicy } from "./resources.ts";
import { validateSecurityContext } from "./security.ts";

export const PROTOCOLS = ["SCTP", "TCP", "UDP"];
const RESTART_POLICIES = ["Always", "Never", "OnFailure"];
const RESTART_RULES_MAX = 20;
const EXIT_CODES_MAX = 255;

export interface ContainerContext { readonly spec: Readonly<PodSpec>; readonly volumes: ReadonlyMap<string, Volume>; readonly claimNames: ReadonlySet<string>; readonly rules: PodRules }

export function* validateContainers(path: string, context: ContainerContext): Iterable<FieldError> {
  const { spec } = context;
  const containers = spec.containers ?? [];
  if (containers.length === 0) { yield required(path); return; }
  const names = new Set<string>();
  for (const [i, container] of containers.entries()) {
    const at = index(path, i);
    yield* validateCommon(at, container, context);
    if (names.has(container.name)) yield duplicate(child(at, "name"), container.name);
    names.add(container.name);
    if (container.lifecycle) yield* validateLifecycle(child(at, "lifecycle"), container.lifecycle, spec.terminationGracePeriodSeconds, spec.os);
    yield* validateProbes(at, container, spec.terminationGracePeriodSeconds);
    yield* validateRestartPolicy(at, container);
  }
  yield* validateHostPorts(path, containers);
}

export function* validateInitContainers(path: string, context: ContainerContext): Iterable<FieldError> {
  const { spec, rules } = context;
  const names = new Set((spec.containers ?? []).map(({ name }) => name));
  for (const [i, container] of (spec.initContainers ?? []).entries()) {
    const at = index(path, i);
    yield* validateCommon(at, container, context);
    if (container.restartPolicy === undefined && container.restartPolicyRules?.length) yield rulesWithoutPolicy(at);
    else yield* validateRestartPolicy(at, container);
    if (names.has(container.name)) yield duplicate(child(at, "name"), container.name);
    else if (container.name) names.add(container.name);
    yield* validateHostPorts(path, [container]);
    if (isSidecar(container)) {
      if (container.lifecycle) yield* validateLifecycle(child(at, "lifecycle"), container.lifecycle, spec.terminationGracePeriodSeconds, spec.os);
      yield* validateProbes(at, container, spec.terminationGracePeriodSeconds);
      continue;
    }
    for (const field of ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] as const)
      if (container[field]) yield forbidden(child(at, field), "may not be set for init containers without restartPolicy=Always");
    if (rules.allowRestartContainerInInit) continue;
    for (const [j, { restartPolicy }] of (container.resizePolicy ?? []).entries())
      if (restartPolicy === "RestartContainer")
        yield invalid(child(index(child(at, "resizePolicy"), j), "restartPolicy"), restartPolicy, "must not be set to 'RestartContainer' for non-sidecar initContainers");
  }
}

/** The fields an ephemeral container cannot have: it is there to look, not to serve. */
const NOT_EPHEMERAL = ["ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] as const;
const CANNOT_BE_SET = "cannot be set for an Ephemeral Container";

export function* validateEphemeralContainers(path: string, context: ContainerContext): Iterable<FieldError> {
  const { spec } = context;
  const others = new Set([...(spec.containers ?? []), ...(spec.initContainers ?? [])].map(({ name }) => name));
  const names = new Set(others);
  for (const [i, container] of (spec.ephemeralContainers ?? []).entries()) {
    const at = index(path, i);
    yield* validateCommon(at, container, context);
    yield* validateImageUnpadded(at, container);
    if (names.has(container.name)) yield duplicate(child(at, "name"), container.name);
    names.add(container.name);
    if (container.targetContainerName && !others.has(container.targetContainerName)) yield notFound(child(at, "targetContainerName"), container.targetContainerName);
    for (const field of NOT_EPHEMERAL) if (isSet(field, container[field])) yield forbidden(child(at, field), CANNOT_BE_SET);
    for (const [j, mount] of (container.volumeMounts ?? []).entries())
      for (const field of ["subPath", "subPathExpr"] as const) if (mount[field]) yield forbidden(child(index(child(at, "volumeMounts"), j), field), CANNOT_BE_SET);
  }
}

/** A list that is empty is set, and so is a lifecycle. Resources are a struct in Go: an empty one is none, one of empty parts is not. */
function isSet(field: (typeof NOT_EPHEMERAL)[number], value: object | string | undefined): boolean {
  return value !== undefined && (field !== "resources" || Object.keys(value).length > 0);
}

/** Of pods, not of templates: where the pod is, the image is pulled. */
export function* validateImageUnpadded(path: string, { image = "" }: Container | EphemeralContainer): Iterable<FieldError> {
  if (image.trim() !== image) yield invalid(child(path, "image"), image, "must not have leading or trailing whitespace");
}

function* validateCommon(path: string, container: Readonly<Container | EphemeralContainer>, { spec, volumes, claimNames, rules }: ContainerContext): Iterable<FieldError> {
  if (!container.name) yield required(child(path, "name"));
  else yield* isDns1123Label(child(path, "name"), container.name);
  if (!container.image) yield required(child(path, "image"));
  const policy = container.terminationMessagePolicy;
  if (!policy) yield required(child(path, "terminationMessagePolicy"));
  else if (policy !== "File" && policy !== "FallbackToLogsOnError") yield notSupported(child(path, "terminationMessagePolicy"), policy, ["File", "FallbackToLogsOnError"]);
  yield* validatePorts(child(path, "ports"), container.ports ?? []);
  yield* validateEnv(child(path, "env"), container.env ?? []);
  yield* validateEnvFrom(child(path, "envFrom"), container.envFrom ?? []);
  yield* validateMounts(child(path, "volumeMounts"), container, volumes);
  yield* validateDevices(child(path, "volumeDevices"), container, volumes);
  yield* oneOf(child(path, "imagePullPolicy"), container.imagePullPolicy, ["Always", "IfNotPresent", "Never"]);
  yield* validateContainerResources(child(path, "resources"), container.resources ?? {}, claimNames, rules);
  yield* validateResizePolicy(child(path, "resizePolicy"), container.resizePolicy ?? [], spec.restartPolicy);
  if (container.securityContext) yield* validateSecurityContext(child(path, "securityContext"), container.securityContext, spec.hostUsers !== false);
}

function* validatePorts(path: string, ports: readonly ContainerPort[]): Iterable<FieldError> {
  const names = new Set<string>();
  for (const [i, { name, containerPort, hostPort, protocol }] of ports.entries()) {
    const at = index(path, i);
    if (name) {
      const wrong = portName(name);
      if (wrong.length > 0) yield* problems(child(at, "name"), name, wrong);
      else if (names.has(name)) yield duplicate(child(at, "name"), name);
      else names.add(name);
    }
    if (!containerPort) yield required(child(at, "containerPort"));
    else yield* problems(child(at, "containerPort"), containerPort, portNumber(containerPort));
    if (hostPort) yield* problems(child(at, "hostPort"), hostPort, portNumber(hostPort));
    yield* oneOf(child(at, "protocol"), protocol, PROTOCOLS);
  }
}

function rulesWithoutPolicy(path: string): FieldError { return required(child(path, "restartPolicy"), "must specify restartPolicy when restart rules are used"); }

/** Of one container, which may differ from the pod's, even by exit code. */
function* validateRestartPolicy(path: string, { restartPolicy, restartPolicyRules: restartRules = [] }: Readonly<Container>): Iterable<FieldError> {
  const at = child(path, "restartPolicy");
  if (restartPolicy === undefined) {
    if (restartRules.length === 0) return;
    yield rulesWithoutPolicy(path);
  } else if (!RESTART_POLICIES.includes(restartPolicy)) yield notSupported(at, restartPolicy, RESTART_POLICIES);
  const rulesPath = child(path, "restartPolicyRules");
  if (restartRules.length > RESTART_RULES_MAX) yield tooMany(rulesPath, restartRules.length, RESTART_RULES_MAX);
  for (const [i, { action, exitCodes }] of restartRules.entries()) {
    const rulePath = index(rulesPath, i);
    if (action !== "Restart" && action !== "RestartAllContainers") yield notSupported(child(rulePath, "action"), action ?? "", ["Restart", "RestartAllContainers"]);
    if (!exitCodes) { yield required(child(rulePath, "exitCodes"), "must be specified"); continue; }
    if (exitCodes.operator !== "In" && exitCodes.operator !== "NotIn") yield notSupported(child(rulePath, "exitCodes", "operator"), exitCodes.operator ?? "", ["In", "NotIn"]);
    const count = exitCodes.values?.length ?? 0;
    if (count > EXIT_CODES_MAX) yield tooMany(child(rulePath, "exitCodes", "values"), count, EXIT_CODES_MAX);
  }
}
