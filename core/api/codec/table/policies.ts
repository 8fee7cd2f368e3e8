/** RBAC, admission, flow control, certificates, devices and the API's own kinds. Source: kubernetes v1.36 pkg/printers/internalversion/printers.go */
import type {
  MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration, ParamKind, ParamRef, ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
} from "../../gen/admissionregistration.v1.ts";
import type { StorageVersion } from "../../gen/apiserverinternal.v1alpha1.ts";
import type { CertificateSigningRequest } from "../../gen/certificates.v1.ts";
import type { ClusterTrustBundle, PodCertificateRequest } from "../../gen/certificates.v1beta1.ts";
import type { FlowSchema, PriorityLevelConfiguration } from "../../gen/flowcontrol.v1.ts";
import type { LabelSelector } from "../../gen/meta.v1.ts";
import type { ClusterRoleBinding, RoleBinding, Subject } from "../../gen/rbac.v1.ts";
import type { StorageVersionMigration } from "../../gen/storagemigration.v1beta1.ts";
import { formatGroupResource } from "../../meta/gvk.ts";
import type { ApiObject } from "../../meta/object-meta.ts";
import { AGE, type Column, column, fieldColumn, INTEGER, NAME, WIDE } from "./columns.ts";
import { humanDuration, since } from "./human-duration.ts";
import { type Cell, formatLabels, listWithMore, printer } from "./printer.ts";

function bindingColumns(kind: string, owner: string): Column[] {
  return [
    NAME, fieldColumn("Role", `api.rbac.v1.${kind}.roleRef`), AGE,
    column("Users", `Users in the ${owner}`, WIDE), column("Groups", `Groups in the ${owner}`, WIDE), column("ServiceAccounts", `ServiceAccounts in the ${owner}`, WIDE),
  ];
}

function bindingCells({ metadata, roleRef, subjects = [] }: Readonly<RoleBinding | ClusterRoleBinding>, nowMs: number): Cell[] {
  const named = (kind: string, name: (subject: Subject) => string): string => subjects.filter((subject) => subject.kind === kind).map(name).join(", ");
  return [
    metadata.name, `${roleRef?.kind ?? ""}/${roleRef?.name ?? ""}`, since(metadata.creationTimestamp, nowMs),
    named("User", ({ name }) => name), named("Group", ({ name }) => name), named("ServiceAccount", ({ namespace, name }) => `${namespace ?? ""}/${name}`),
  ];
}

export const roleBindings = printer<RoleBinding>({ columns: bindingColumns("RoleBinding", "roleBinding"), cells: bindingCells });
export const clusterRoleBindings = printer<ClusterRoleBinding>({ columns: bindingColumns("ClusterRoleBinding", "clusterRoleBinding"), cells: bindingCells });

export const webhookConfigurations = printer<MutatingWebhookConfiguration | ValidatingWebhookConfiguration>({
  columns: [NAME, column("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration", INTEGER), AGE],
  cells: ({ metadata, webhooks }, nowMs) => [metadata.name, webhooks?.length ?? 0, since(metadata.creationTimestamp, nowMs)],
});

const PARAM_KIND = column("ParamKind", "ParamKind specifies the kind of resources used to parameterize this policy");

function paramKind(kind: ParamKind | undefined): string { return kind ? `${kind.apiVersion ?? ""}/${kind.kind ?? ""}` : "<unset>"; }

export const validatingAdmissionPolicies = printer<ValidatingAdmissionPolicy>({
  columns: [NAME, column("Validations", "Validations indicates the number of validation rules defined in this configuration", INTEGER), PARAM_KIND, AGE],
  cells: ({ metadata, spec }, nowMs) => [metadata.name, spec?.validations?.length ?? 0, paramKind(spec?.paramKind), since(metadata.creationTimestamp, nowMs)],
});

export const mutatingAdmissionPolicies = printer<MutatingAdmissionPolicy>({
  columns: [NAME, column("Mutations", "Mutation indicates the number of mutations rules defined in this configuration", INTEGER), PARAM_KIND, AGE],
  cells: ({ metadata, spec }, nowMs) => [metadata.name, spec?.mutations?.length ?? 0, paramKind(spec?.paramKind), since(metadata.creationTimestamp, nowMs)],
});

function paramRef(ref: ParamRef | undefined): string {
  if (ref?.name) return `${ref.namespace || "*"}/${ref.name}`;
  return ref?.selector ? goSelector(ref.selector) : "<unset>";
}

/** As Go prints the struct: upstream shows it so. */
function goSelector({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const labels = Object.keys(matchLabels).sort().map((key) => `${key}: ${matchLabels[key]},`);
  const expressions = matchExpressions.map(({ key, operator, values = [] }) => `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(" ")}],},`);
  return `&LabelSelector{MatchLabels:map[string]string{${labels.join("")}},MatchExpressions:[]LabelSelectorRequirement{${expressions.join("")}},}`;
}

export const admissionPolicyBindings = printer<ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding>({
  columns: [
    NAME,
    column("PolicyName", "PolicyName indicates the policy definition which the policy binding binded to"),
    column("ParamRef", "ParamRef indicates the param resource which sets the configuration param"),
    AGE,
  ],
  cells: ({ metadata, spec }, nowMs) => [metadata.name, spec?.policyName ?? "", paramRef(spec?.paramRef), since(metadata.creationTimestamp, nowMs)],
});

const FLOW = "api.flowcontrol.v1";

export const flowSchemas = printer<FlowSchema>({
  columns: [
    NAME,
    fieldColumn("PriorityLevel", `${FLOW}.PriorityLevelConfigurationReference.name`),
    fieldColumn("MatchingPrecedence", `${FLOW}.FlowSchemaSpec.matchingPrecedence`),
    fieldColumn("DistinguisherMethod", `${FLOW}.FlowSchemaSpec.distinguisherMethod`),
    AGE,
    column("MissingPL", "references a broken or non-existent PriorityLevelConfiguration"),
  ],
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name, spec?.priorityLevelConfiguration?.name ?? "", spec?.matchingPrecedence ?? 0, spec?.distinguisherMethod?.type ?? "<none>",
    since(metadata.creationTimestamp, nowMs), status?.conditions?.find(({ type }) => type === "Dangling")?.status ?? "?",
  ],
  /** In the order they are tried. */
  compare: (a, b) => (a.spec?.matchingPrecedence ?? 0) - (b.spec?.matchingPrecedence ?? 0) || (a.metadata.name < b.metadata.name ? -1 : 1),
});

export const priorityLevelConfigurations = printer<PriorityLevelConfiguration>({
  columns: [
    NAME,
    fieldColumn("Type", `${FLOW}.PriorityLevelConfigurationSpec.type`),
    fieldColumn("NominalConcurrencyShares", `${FLOW}.LimitedPriorityLevelConfiguration.nominalConcurrencyShares`),
    fieldColumn("Queues", `${FLOW}.QueuingConfiguration.queues`),
    fieldColumn("HandSize", `${FLOW}.QueuingConfiguration.handSize`),
    fieldColumn("QueueLengthLimit", `${FLOW}.QueuingConfiguration.queueLengthLimit`),
    AGE,
  ],
  cells({ metadata, spec }, nowMs) {
    const queuing = spec?.limited?.limitResponse?.queuing;
    return [
      metadata.name, spec?.type ?? "", spec?.limited ? spec.limited.nominalConcurrencyShares ?? 0 : "<none>", queuing ? queuing.queues ?? 0 : "<none>",
      queuing ? queuing.handSize ?? 0 : "<none>", queuing ? queuing.queueLengthLimit ?? 0 : "<none>", since(metadata.creationTimestamp, nowMs),
    ];
  },
});

const CERTIFICATES = "api.certificates.v1beta1";

export const certificateSigningRequests = printer<CertificateSigningRequest>({
  columns: [
    NAME, AGE,
    fieldColumn("SignerName", "api.certificates.v1.CertificateSigningRequestSpec.signerName"),
    fieldColumn("Requestor", "api.certificates.v1.CertificateSigningRequestSpec.request"),
    fieldColumn("RequestedDuration", "api.certificates.v1.CertificateSigningRequestSpec.expirationSeconds"),
    fieldColumn("Condition", "api.certificates.v1.CertificateSigningRequestStatus.conditions"),
  ],
  cells: (request, nowMs) => [
    request.metadata.name, since(request.metadata.creationTimestamp, nowMs), request.spec?.signerName || "<none>", request.spec?.username ?? "",
    request.spec?.expirationSeconds === undefined ? "<none>" : humanDuration(request.spec.expirationSeconds * 1000), requestCondition(request),
  ],
});

function requestCondition({ status }: Readonly<CertificateSigningRequest>): string {
  const types = new Set<string>(status?.conditions?.map(({ type }) => type));
  const words = [types.has("Denied") ? "Denied" : types.has("Approved") ? "Approved" : "Pending"];
  if (types.has("Failed")) words.push("Failed");
  if (status?.certificate?.length) words.push("Issued");
  return words.join(",");
}

export const clusterTrustBundles = printer<ClusterTrustBundle>({
  columns: [NAME, fieldColumn("SignerName", `${CERTIFICATES}.ClusterTrustBundleSpec.signerName`)],
  cells: ({ metadata, spec }) => [metadata.name, spec?.signerName || "<none>"],
});

export const podCertificateRequests = printer<PodCertificateRequest>({
  columns: [
    NAME,
    ...["podName", "serviceAccountName", "nodeName", "signerName"].map((field) =>
      fieldColumn(field[0]!.toUpperCase() + field.slice(1), `${CERTIFICATES}.PodCertificateRequestSpec.${field}`)),
    column("State", "Is the request Pending, Issued, Denied, or Failed?"),
    fieldColumn("UnverifiedUserAnnotations", `${CERTIFICATES}.PodCertificateRequestSpec.unverifiedUserAnnotations`),
  ],
  cells: ({ metadata, spec, status }) => [
    metadata.name, spec?.podName ?? "", spec?.serviceAccountName ?? "", spec?.nodeName ?? "", spec?.signerName ?? "",
    status?.conditions?.findLast(({ type }) => ["Issued", "Denied", "Failed"].includes(type))?.type ?? "Pending",
    formatLabels(spec?.unverifiedUserAnnotations),
  ],
});

const VERSIONS_SHOWN_MAX = 3;

export const storageVersions = printer<StorageVersion>({
  columns: [
    NAME,
    fieldColumn("CommonEncodingVersion", "api.apiserverinternal.v1alpha1.StorageVersionStatus.commonEncodingVersion"),
    fieldColumn("StorageVersions", "api.apiserverinternal.v1alpha1.StorageVersionStatus.storageVersions"),
    AGE,
  ],
  cells: ({ metadata, status }, nowMs) => [
    metadata.name, status?.commonEncodingVersion ?? "<unset>",
    listWithMore((status?.storageVersions ?? []).map(({ apiServerID, encodingVersion }) => `${apiServerID ?? ""}=${encodingVersion ?? ""}`), VERSIONS_SHOWN_MAX),
    since(metadata.creationTimestamp, nowMs),
  ],
});

export const storageVersionMigrations = printer<StorageVersionMigration>({
  columns: [{ ...NAME, format: "" }, column("Resource", "GroupResource to migrate"), column("Status", "Status of the migration")],
  cells: ({ metadata, spec, status }) => [
    metadata.name,
    formatGroupResource({ group: spec?.resource?.group ?? "", resource: spec?.resource?.resource ?? "" }),
    status?.conditions?.findLast(({ type, status: is }) => is === "True" && ["Running", "Failed", "Succeeded"].includes(type))?.type ?? "Unknown",
  ],
});

interface ApiService extends ApiObject {
  readonly spec?: { readonly service?: { readonly namespace?: string; readonly name?: string } };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason?: string }[] };
}

export const apiServices = printer<ApiService>({
  columns: [
    NAME,
    column("Service", "The reference to the service that hosts this API endpoint."),
    column("Available", "Whether this service is available."),
    AGE,
  ],
  cells({ metadata, spec, status }, nowMs) {
    const available = status?.conditions?.find(({ type }) => type === "Available");
    const shown = available === undefined ? "Unknown" : available.status !== "True" && available.reason ? `${available.status} (${available.reason})` : available.status;
    return [metadata.name, spec?.service ? `${spec.service.namespace}/${spec.service.name}` : "Local", shown, since(metadata.creationTimestamp, nowMs)];
  },
});
