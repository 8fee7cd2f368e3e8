/**
 * The status subresource, as most kinds have it: only status changes, and of metadata only what a status update may carry.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/apis/meta/v1/meta.go ResetObjectMetaForStatus
 */
import type { FieldError } from "../../api/meta/field-error.ts";
import type { ApiObject, ObjectMeta } from "../../api/meta/object-meta.ts";
import type { Subresource, WriteContext } from "../generic/resource.ts";
import { keepAllMetadata } from "../generic/status-part.ts";

type Part<T extends ApiObject> = Extract<Subresource<T>, { type: "part" }>;

interface StatusOptions<T extends ApiObject> {
  /** After spec and metadata have been put back. Mutates `next`. */
  readonly prepare?: (next: T, old: Readonly<T>, context: WriteContext) => void;
  readonly authorize?: NonNullable<Part<T>["authorize"]>;
  readonly validate?: (next: Readonly<T>, old: Readonly<T>, context?: WriteContext) => Iterable<FieldError>;
  /** Texts for the Warning header. */
  readonly warnings?: (next: Readonly<T>) => Iterable<string>;
  /** Labels, annotations, finalizers and owners stay as they were; "all": whatever is sent. Default: a status update may change them, as upstream lets most kinds do. */
  readonly keepsMetadata?: boolean | "all";
}

export function statusPart<T extends ApiObject>({ prepare, authorize, validate, warnings, keepsMetadata = false }: StatusOptions<T> = {}): Part<T> {
  return {
    type: "part",
    generation: false,
    prepare(next, old, context) {
      keepAllBut(next, old, "status");
      if (keepsMetadata === "all") keepAllMetadata(next, old);
      else if (keepsMetadata) keepMetadata(next, old);
      prepare?.(next, old, context);
    },
    ...(authorize ? { authorize } : {}),
    ...(validate ? { validate } : {}),
    ...(warnings ? { warnings } : {}),
  };
}

/** Puts back everything but `field`, type and metadata. Mutates `next`. */
export function keepAllBut<T extends ApiObject>(next: T, old: Readonly<T>, field: string): void {
  const target = next as unknown as Record<string, unknown>;
  const source = old as unknown as Record<string, unknown>;
  for (const name of new Set([...Object.keys(target), ...Object.keys(source)])) {
    if (name === field || name === "metadata" || name === "apiVersion" || name === "kind") continue;
    if (source[name] === undefined) delete target[name];
    else target[name] = source[name];
  }
}

const KEPT: readonly (keyof ObjectMeta)[] = ["labels", "annotations", "finalizers", "ownerReferences"];

/** What a write of status alone does not touch. Mutates `next`. */
export function keepMetadata(next: ApiObject, old: Readonly<ApiObject>): void {
  const target = next.metadata as unknown as Record<string, unknown>;
  for (const name of KEPT) {
    if (old.metadata[name] === undefined) delete target[name];
    else target[name] = old.metadata[name];
  }
}
