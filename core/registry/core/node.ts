/**
 * Node (v1): a machine pods run on. Its kubelet creates it, status and all, and reports to its status from then on.
 *
 * Source: kubernetes v1.36 pkg/registry/core/node/strategy.go, pkg/apis/core/validation/validation.go ValidateNode
 */
import { child, duplicate, type FieldError, forbidden, index, internal, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { Node, NodeConfigSource, Taint } from "../../api/gen/core.v1.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { validateLabelName } from "../../api/meta/label-selector.ts";
import { configMapKey, dns1123Label, dns1123Subdomain, labelValue } from "../../api/meta/names.ts";
import { internalForm } from "../../api/schema/internal-form.ts";
import { defineResource } from "../generic/resource.ts";
import { cidrWarnings, isDualStack, legacyCidr, parseRange } from "./checks/ip.ts";
import { resourceQuantity, roundResourceList } from "./checks/resources.ts";
import { positive, problems } from "./checks/values.ts";
import { validateNodeAnnotations } from "./node-annotations.ts";
import { TAINT_EFFECTS } from "./pod/validation/affinity.ts";
import { statusPart } from "./status-part.ts";

const POD_CIDRS = "spec.podCIDRs";
const FEATURE_NAME = /^[A-Z][a-zA-Z0-9]*(\/[a-zA-Z][a-zA-Z0-9]*)*$/;
const FEATURE_NAME_LENGTH_MAX = 253;

export const nodes = defineResource<Node>({
  group: "", version: "v1", kind: "Node", plural: "nodes",
  generation: false, updateOrder: "change last",
  keepsStatusOnCreate: true,

  defaults(node) {
    const spec = (node.spec ??= {});
    if (spec.podCIDR && spec.podCIDR !== spec.podCIDRs?.[0]) spec.podCIDRs = [spec.podCIDR]; // where they differ it is what older clients mean
    else if (spec.podCIDRs?.[0]) spec.podCIDR = spec.podCIDRs[0];
    defaultStatus(node);
  },
  statusDefaults: defaultStatus,
  prepareForCreate(node) {
    delete node.spec.configSource;
    if (node.status) delete node.status.config;
  },
  prepareForUpdate(next, old) {
    if (!old.spec.configSource) delete next.spec.configSource;
  },

  *validate(node, old) {
    const { spec, status } = node;
    yield* validateNodeAnnotations(node, old, validateTaints);
    yield* validateTaints("metadata.taints", spec.taints ?? []);
    yield* validateReported(node);
    if (status?.nodeInfo?.swap?.capacity !== undefined) yield* positive("metadata.nodeSwapStatus.capacity", status.nodeInfo.swap.capacity);
    const cidrs = spec.podCIDRs ?? [];
    for (const [i, cidr] of cidrs.entries()) yield* legacyCidr(index(POD_CIDRS, i), cidr);
    const malformed = cidrs.length > 1 ? cidrs.findIndex((cidr) => parseRange(cidr) === undefined) : -1;
    if (malformed >= 0) yield internal(POD_CIDRS, `invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[${malformed}]: <nil> (invalid CIDR address: ${cidrs[malformed]})`);
    if (cidrs.length > 1 && (cidrs.length > 2 || malformed >= 0 || !isDualStack(cidrs))) yield invalid(POD_CIDRS, cidrs, "may specify no more than one CIDR for each IP family");
  },
  validateUpdate: validateNodeUpdate,

  *warnings({ spec }) {
    if (spec.configSource) yield "spec.configSource: the feature is removed";
    if (spec.externalID) yield "spec.externalID: this field is deprecated, and is unused by Kubernetes";
    for (const [i, cidr] of (spec.podCIDRs ?? []).entries()) yield* cidrWarnings(index(POD_CIDRS, i), cidr);
  },
  fields: ({ spec }) => ({ "spec.unschedulable": String(spec.unschedulable ?? false) }),

  subresources: {
    status: statusPart<Node>({
      prepare(next, old) {
        if (next.status && !old.status?.config) delete next.status.config;
      },
      validate: validateNodeUpdate,
    }),
  },
});

function defaultStatus(node: Node): void {
  const status = (node.status ??= {});
  if (status.capacity) status.allocatable ??= { ...status.capacity };
  roundResourceList(status.capacity);
  roundResourceList(status.allocatable);
}

/** What the kubelet says the node has and can do. */
function* validateReported({ status }: Readonly<Node>): Iterable<FieldError> {
  for (const field of ["capacity", "allocatable"] as const)
    for (const [name, value] of Object.entries(status?.[field] ?? {})) yield* resourceQuantity(child("status", field, name), name, value);
  const features = status?.declaredFeatures ?? [];
  for (const [i, feature] of features.entries()) {
    const path = index("status.declaredFeatures", i);
    if (feature.length > FEATURE_NAME_LENGTH_MAX) yield invalid(path, feature, `invalid feature name ${goQuote(feature)}: must be no more than ${FEATURE_NAME_LENGTH_MAX} characters`);
    else if (!FEATURE_NAME.test(feature))
      yield invalid(
        path, feature,
        `invalid feature name ${goQuote(feature)}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes`,
      );
    const before = features[i - 1];
    if (before === feature) yield duplicate(path, feature);
    else if (before !== undefined && before > feature) yield invalid(path, feature, "list must be sorted alphabetically");
  }
}

function* validateTaints(path: string, taints: readonly Taint[]): Iterable<FieldError> {
  const seen = new Set<string>();
  for (const [i, taint] of taints.entries()) {
    const at = index(path, i);
    const { key, value = "", effect } = taint;
    yield* validateLabelName(key, child(at, "key"));
    const texts = labelValue(value);
    if (texts.length > 0) yield invalid(child(at, "value"), value, texts.join(";"));
    if (!effect) yield required(child(at, "effect"));
    else if (!TAINT_EFFECTS.includes(effect)) yield notSupported(child(at, "effect"), effect, TAINT_EFFECTS);
    if (seen.has(`${key}:${effect}`)) yield { ...duplicate(at, internalForm("io.k8s.api.core.v1.Taint", taint)), detail: "taints must be unique by key and effect pair" };
    seen.add(`${key}:${effect}`);
  }
}

/** What is given to a node once: its pod range, its provider's name for it. */
function* validateNodeUpdate(next: Readonly<Node>, old: Readonly<Node>): Iterable<FieldError> {
  yield* validateNodeAnnotations(next, old, validateTaints); // once more, as upstream does, and so are taints below
  yield* validateReported(next);
  const seen = new Set<string>();
  for (const [i, address] of (next.status?.addresses ?? []).entries()) {
    const key = `${address.type}/${address.address}`;
    if (seen.has(key)) yield duplicate(index("status.addresses", i), { Type: address.type, Address: address.address });
    seen.add(key);
  }
  const [before, after] = [old.spec.podCIDRs ?? [], next.spec.podCIDRs ?? []];
  const changed = before.length > 0 && before.length !== after.length ? [before] : before.filter((cidr, i) => cidr !== after[i]);
  for (const _ of changed) yield forbidden(POD_CIDRS, `node updates may not change podCIDR except from "" to valid`);
  if (old.spec.providerID && old.spec.providerID !== next.spec.providerID) yield forbidden("spec.providerID", `node updates may not change providerID except from "" to valid`);
  if (next.spec.configSource) yield* validateConfigSource("spec.configSource", next.spec.configSource, "spec");
  for (const field of ["assigned", "active", "lastKnownGood"] as const) {
    const source = next.status?.config?.[field];
    if (source) yield* validateConfigSource(child("status.config", field), source, "status");
  }
  yield* validateTaints("metadata.taints", next.spec.taints ?? []); // once more, as upstream does: the message has each error once, the causes twice
  if ((next.spec.externalID ?? "") !== (old.spec.externalID ?? "")) yield forbidden("spec.externalID", "may not be updated");
}

function* validateConfigSource(path: string, source: NodeConfigSource, where: "spec" | "status"): Iterable<FieldError> {
  const { configMap } = source;
  if (!configMap) { yield invalid(path, { ConfigMap: null }, "exactly one reference subfield must be non-nil"); return; }
  const at = child(path, "configMap");
  for (const field of ["uid", "resourceVersion"] as const) {
    if (where === "spec" && configMap[field]) yield forbidden(child(at, field), `${field} must not be set in spec`);
    if (where === "status" && !configMap[field]) yield required(child(at, field));
  }
  const rules = [["namespace", dns1123Label], ["name", dns1123Subdomain], ["kubeletConfigKey", configMapKey]] as const;
  for (const [field, check] of rules) {
    if (!configMap[field]) yield required(child(at, field));
    else yield* problems(child(at, field), configMap[field], check(configMap[field]));
  }
}
