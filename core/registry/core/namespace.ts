/**
 * Namespace (v1): a scope for names, and for what may be done to what has them.
 *
 * It carries its own name as a label. Deleting one marks it Terminating; it goes when its content has gone and the namespace controller
 * has taken `kubernetes` off spec.finalizers, through the finalize subresource.
 *
 * Source: kubernetes v1.36 pkg/registry/core/namespace/{strategy.go,storage/storage.go}
 */
import { type FieldError, index, invalid } from "../../api/meta/field-error.ts";
import type { Namespace } from "../../api/gen/core.v1.ts";
import { dns1123Label, qualifiedName } from "../../api/meta/names.ts";
import { defineResource } from "../generic/resource.ts";
import { problems } from "./checks/values.ts";
import { keepAllBut, statusPart } from "./status-part.ts";

const NAME_LABEL = "kubernetes.io/metadata.name";
const FINALIZER = "kubernetes";
const FINALIZERS_STANDARD = [FINALIZER, "orphan", "foregroundDeletion"];

export const namespaces = defineResource<Namespace>({
  group: "", version: "v1", kind: "Namespace", plural: "namespaces",
  generation: false, updateOrder: "change last",
  validateName: dns1123Label,

  defaults(namespace) {
    labelWithName(namespace);
    namespace.status = { ...namespace.status, phase: namespace.status?.phase || "Active" };
  },
  prepareForCreate(namespace) {
    namespace.status = { phase: "Active" };
    const finalizers = namespace.spec?.finalizers ?? [];
    namespace.spec = { ...namespace.spec, finalizers: finalizers.includes(FINALIZER) ? finalizers : [...finalizers, FINALIZER] };
    labelWithName(namespace); // with generateName there was no name before
  },
  prepareForUpdate(next, old) {
    keepFinalizers(next, old);
    labelWithName(next);
  },

  *validate({ spec }) { for (const finalizer of spec?.finalizers ?? []) yield* validateFinalizer("spec.finalizers", finalizer); },
  fields: ({ metadata, status }) => ({ "status.phase": status?.phase ?? "", name: metadata.name }),

  isHeld: ({ spec }) => (spec?.finalizers ?? []).length > 0,
  markDeleting(namespace) { namespace.status = { ...namespace.status, phase: "Terminating" }; },

  subresources: {
    status: statusPart<Namespace>({
      *validate({ metadata, status }) {
        const phase = status?.phase ?? "";
        if (!metadata.deletionTimestamp && phase !== "Active") yield invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty");
        if (metadata.deletionTimestamp && phase !== "Terminating") yield invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
      },
    }),
    finalize: {
      type: "part",
      prepare(next, old) { keepAllBut(next, old, "spec"); },
      *validate({ spec }) { for (const [i, finalizer] of (spec?.finalizers ?? []).entries()) yield* validateFinalizer(index("spec.finalizers", i), finalizer); },
    },
  },
});

function labelWithName({ metadata }: Namespace): void {
  if (metadata.name) metadata.labels = { ...metadata.labels, [NAME_LABEL]: metadata.name };
}

function keepFinalizers(next: Namespace, old: Readonly<Namespace>): void {
  const { finalizers: _, ...rest } = next.spec ?? {};
  next.spec = old.spec?.finalizers ? { ...rest, finalizers: old.spec.finalizers } : rest;
}

function* validateFinalizer(path: string, name: string): Iterable<FieldError> {
  yield* problems(path, name, qualifiedName(name));
  if (!name.includes("/") && !FINALIZERS_STANDARD.includes(name)) yield invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified");
}
