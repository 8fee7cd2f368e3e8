/**
 * Tells in the status of ValidatingAdmissionPolicies what their expressions get wrong of the types they are about: once for each generation.
 *
 * API:    https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/#type-checking
 * Source: kubernetes v1.36 pkg/controller/validatingadmissionpolicystatus
 */
import type { CustomResourceDefinition } from "../../api/gen/apiextensions.v1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import type { ValidatingAdmissionPolicy } from "../../api/gen/admissionregistration.v1.ts";
import { builtInFacts } from "../../api/schema/facts.ts";
import { builtInResources } from "../../api/schema/resources.ts";
import { builtInSchema } from "../../cel/schema/built-in-schema.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, VALIDATING_ADMISSION_POLICIES } from "../../client/resources.ts";
import { breather, inPieces } from "../../lifecycle/breather.ts";
import { type Controller, itself } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { expressionWarnings, type Kinds } from "./plan.ts";

export function validatingAdmissionPolicyStatusController({ client, informers, clock }: Pick<ControllerDeps, "client" | "informers" | "clock">): Controller {
  const policies = informers.of(VALIDATING_ADMISSION_POLICIES);
  const definitions = informers.of(CUSTOM_RESOURCE_DEFINITIONS);
  const policyClient = client.resource(VALIDATING_ADMISSION_POLICIES);
  const breathe = breather(clock);
  const kinds = kindsIn(() => definitions.list());
  return {
    name: "validatingadmissionpolicy-status",
    workers: 5,
    watches: [itself(policies)],
    reads: [definitions],
    async reconcile(key, { signal }) {
      const policy = policies.get(key);
      if (!policy) return;
      const { generation = 0, name, uid } = policy.metadata;
      if (generation <= (policy.status?.observedGeneration ?? 0)) return;
      const warnings = await inPieces(expressionWarnings(policy.spec, kinds), () => {
        signal.throwIfAborted();
        return breathe();
      });
      if (policies.get(key)?.metadata.uid !== uid) return; // another has its name by now, whose generation may be the same
      const status = { observedGeneration: generation, typeChecking: warnings.length > 0 ? { expressionWarnings: warnings } : {} };
      const draft = { apiVersion: policy.apiVersion, kind: policy.kind, metadata: { name }, status } as unknown as NewObject<ValidatingAdmissionPolicy>;
      await policies.caughtUp([await policyClient.apply(draft, { fieldManager: "validatingadmissionpolicy-status", force: true, subresource: "status", signal })], signal);
    },
  };
}

/** Built-in ones, and those of definitions. */
function kindsIn(definitions: () => Iterable<Readonly<CustomResourceDefinition>>): Kinds {
  return {
    of(group, version, resource) {
      const builtIn = builtInResources.rows().filter((row) => row.version === version && (row.plural === resource || row.singular === resource) && (group === "" || row.group === group));
      const custom = [...definitions()].filter(({ spec }) => (group === "" || spec.group === group) && spec.versions.some((one) => one.name === version && one.served) && (spec.names.plural === resource || spec.names.singular === resource));
      return [...builtIn.map(({ group, version, kind }) => ({ group, version, kind })), ...custom.map(({ spec }) => ({ group: spec.group, version, kind: spec.names.kind }))];
    },
    schemaOf(kind) {
      const type = builtInFacts.typeOf(kind);
      if (type) return builtInSchema(type);
      const found = [...definitions()].find(({ spec }) => spec.group === kind.group && spec.names.kind === kind.kind);
      const version = found?.spec.versions.find(({ name }) => name === kind.version);
      if (!version) return undefined;
      const schema = version.schema?.openAPIV3Schema ?? {};
      const meta = builtInFacts.structNamed("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")!;
      return { ...schema, type: "object", properties: { ...schema.properties, apiVersion: { type: "string" }, kind: { type: "string" }, metadata: builtInSchema(meta) } };
    },
  };
}
