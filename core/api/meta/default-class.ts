/** What marks a StorageClass as that of claims which name none; the second of old. Source: kubernetes v1.36 pkg/volume/util/storageclass.go */
export const DEFAULT_CLASS_ANNOTATIONS: readonly string[] = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
