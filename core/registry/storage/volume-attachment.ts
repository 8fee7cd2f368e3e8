/**
 * VolumeAttachment (storage.k8s.io/v1): a volume that is to be on a node.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/volume-attachment-v1/
 * Source: kubernetes v1.36 pkg/registry/storage/volumeattachment/strategy.go, pkg/apis/storage/validation/validation.go
 */
import type { VolumeAttachment, VolumeAttachmentSource, VolumeError } from "../../api/gen/storage.v1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { child, type FieldError, forbidden, invalid, required, tooLong } from "../../api/meta/field-error.ts";
import { rangeMessage } from "../../api/meta/names.ts";
import { immutableStruct, isDns1123Subdomain } from "../core/checks/values.ts";
import { validateInlineVolume } from "../core/persistent-volume/validation.ts";
import { csiDriverName } from "../core/pod/validation/volume-sources.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { totalBytes } from "./class-fields.ts";

const METADATA_BYTES_MAX = 256 * 1024;
const MESSAGE_BYTES_MAX = 1024;

export const volumeAttachments = defineResource<VolumeAttachment>({
  group: "storage.k8s.io", version: "v1", kind: "VolumeAttachment", plural: "volumeattachments",
  generation: false, unconditionalUpdate: false,
  prepareForCreate(attachment) { attachment.status = { attached: false }; },
  validate,
  validateUpdate: (next, old) => immutableStruct("spec", "storage.v1.VolumeAttachmentSpec", next.spec, old.spec),
  subresources: { status: statusPart<VolumeAttachment>({ keepsMetadata: true, validate: (next) => validate(next) }) },
});

function* validate({ spec, status }: Readonly<VolumeAttachment>): Iterable<FieldError> {
  yield* csiDriverName("spec.attacher", spec.attacher);
  yield* validateSource("spec.source", spec.source);
  yield* isDns1123Subdomain("spec.nodeName", spec.nodeName);
  if (totalBytes(status?.attachmentMetadata ?? {}) > METADATA_BYTES_MAX) yield tooLong("status.attachmentMetadata", METADATA_BYTES_MAX);
  for (const field of ["attachError", "detachError"] as const) yield* validateVolumeError(child("status", field), status?.[field]);
  const name = spec.source.persistentVolumeName;
  if (name !== undefined) yield* isDns1123Subdomain("spec.source.persistentVolumeName", name);
}

function* validateSource(path: string, { inlineVolumeSpec, persistentVolumeName }: Readonly<VolumeAttachmentSource>): Iterable<FieldError> {
  const one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  if (inlineVolumeSpec && persistentVolumeName !== undefined) yield forbidden(path, one);
  else if (inlineVolumeSpec) yield* validateInlineVolume(child(path, "inlineVolumeSpec"), inlineVolumeSpec);
  else if (persistentVolumeName === undefined) yield required(path, one);
  else if (persistentVolumeName === "") yield required(child(path, "persistentVolumeName"), "must specify non empty persistentVolumeName");
}

function* validateVolumeError(path: string, error: VolumeError | undefined): Iterable<FieldError> {
  if (byteLength(error?.message ?? "") > MESSAGE_BYTES_MAX) yield tooLong(child(path, "message"), METADATA_BYTES_MAX);
  if ((error?.errorCode ?? 0) < 0) yield invalid(child(path, "errorCode"), error?.errorCode, rangeMessage(0, 2 ** 31 - 1));
}
