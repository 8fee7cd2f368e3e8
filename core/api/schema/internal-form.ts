/**
 * A value as the API server's own structs hold it. They are made for Go, not for JSON: errors that show one show every field, under Go's name, and zero values.
 *
 *   internalForm("io.k8s.api.core.v1.Taint", { key: "a", effect: "NoSchedule" })   → { Key: "a", Value: "", Effect: "NoSchedule", TimeAdded: null }
 *
 * Source: kubernetes v1.36 pkg/apis/<group>/types.go, which have no JSON names, and the order of the versioned types
 */
import type { JsonObject, JsonValue } from "../codec/json-document.ts";
import { canonical } from "./canonical.ts";
import { builtInFacts, type FieldInfo, type StructType, type Type } from "./facts.ts";

/** Where Go's name is not JSON's with a capital: of a field of any type, or of one type's. */
const NAMES: Readonly<Record<string, string>> = {
  apiGroup: "APIGroup", apiGroups: "APIGroups", apiVersion: "APIVersion", apiVersions: "APIVersions", awsElasticBlockStore: "AWSElasticBlockStore", caBundle: "CABundle", cel: "CEL", cephfs: "CephFS", chapAuthDiscovery: "DiscoveryCHAPAuth",
  chapAuthSession: "SessionCHAPAuth", csi: "CSI", dnsConfig: "DNSConfig", dnsPolicy: "DNSPolicy", fc: "FC", fsGroup: "FSGroup", fsGroupChangePolicy: "FSGroupChangePolicy", fsType: "FSType", gcePersistentDisk: "GCEPersistentDisk",
  gmsaCredentialSpec: "GMSACredentialSpec", gmsaCredentialSpecName: "GMSACredentialSpecName", grpc: "GRPC", httpGet: "HTTPGet", httpHeaders: "HTTPHeaders", ip: "IP", ipBlock: "IPBlock", iqn: "IQN", iscsi: "ISCSI", iscsiInterface: "ISCSIInterface",
  nfs: "NFS", pdName: "PDName", rbd: "RBD", seLinuxChangePolicy: "SELinuxChangePolicy", seLinuxOptions: "SELinuxOptions", sslEnabled: "SSLEnabled", storageos: "StorageOS", tcpSocket: "TCPSocket", tty: "TTY", uid: "UID", url: "URL", wwids: "WWIDs",
  "AzureDiskVolumeSource.diskURI": "DataDiskURI", "GlusterfsPersistentVolumeSource.endpoints": "EndpointsName", "GlusterfsVolumeSource.endpoints": "EndpointsName", "IPBlock.cidr": "CIDR", "PodSpec.os": "OS",
  ...Object.fromEntries(["RBDVolumeSource", "RBDPersistentVolumeSource"].flatMap((type) => [["monitors", "CephMonitors"], ["image", "RBDImage"], ["pool", "RBDPool"], ["user", "RadosUser"]].map(([json, go]) => [`${type}.${json}`, go!]))),
  "DeviceAttribute.int": "IntValue", "DeviceAttribute.bool": "BoolValue", "DeviceAttribute.string": "StringValue", "DeviceAttribute.version": "VersionValue",
  "DeviceAttribute.ints": "IntValues", "DeviceAttribute.bools": "BoolValues", "DeviceAttribute.strings": "StringValues", "DeviceAttribute.versions": "VersionValues",
};

/** Fields that stand elsewhere than in the versioned type: after which. */
const AFTER: Readonly<Record<string, string>> = {
  "PodSpec.setHostnameAsFQDN": "subdomain", "PodSpec.preemptionPolicy": "priority", "PodSpec.overhead": "runtimeClassName", "PodSecurityContext.fsGroupChangePolicy": "fsGroup",
  "Volume.quobyte": "rbd", "PersistentVolumeSpec.quobyte": "rbd", "PersistentVolumeSpec.flexVolume": "iscsi", "PersistentVolumeSource.quobyte": "rbd", "PersistentVolumeSource.flexVolume": "iscsi",
};

/** What a pod says of its host is part of the server's own security context, ahead of the rest. */
const OF_THE_HOST: readonly string[] = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];
const SECURITY = "PodSpec.securityContext";
/** Another name of serviceAccountName, which the server has no field for. */
const SECOND_NAME = "PodSpec.serviceAccount";

/** Types that are the same for all versions, and have names for JSON. */
const META = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const OBJECT_META = `${META}ObjectMeta`;

/** Pointers in the versioned types, values in the server's own: nought where nothing is said. */
const VALUES: ReadonlySet<string> = new Set(["RollingUpdateDeployment.maxUnavailable", "RollingUpdateDeployment.maxSurge", "RollingUpdateDaemonSet.maxUnavailable", "RollingUpdateDaemonSet.maxSurge", "RollingUpdateStatefulSetStrategy.partition"]);

/** Structs that are shown with all their fields: a volume that says nothing has thirty, and a body room for a million of them. What is beyond is shown as it was sent. */
const STRUCTS_MAX = 10_000;

/** How many structs may still be filled in. */
interface Room { left: number }

/** `name`: the struct's in OpenAPI. */
export function internalForm(name: string, value: object): JsonObject {
  const type = builtInFacts.structNamed(name);
  if (!type) throw new Error(`no type ${name}`);
  return ofStruct(type, value as Fields, { left: STRUCTS_MAX });
}

type Fields = Readonly<Record<string, unknown>>;

function ofStruct(type: StructType, value: Fields, room: Room): JsonObject {
  if (room.left <= 0) return value as JsonObject;
  room.left--;
  return Object.fromEntries(inServersOrder(type).flatMap((field) => entriesOf(type, field, value, room)));
}

function entriesOf(type: StructType, field: FieldInfo, value: Fields, room: Room): readonly (readonly [string, JsonValue])[] {
  if (field.type.kind === "struct" && field.type.name === OBJECT_META) return Object.entries(ofMeta(field.type, value[field.name] ?? {})); // a part of the struct itself, with JSON's names
  const form = value[field.name] === undefined ? zeroOf(type, field, room) : ofType(field.type, value[field.name], room);
  return [[goNameOf(type, field), placeOf(type, field) === SECURITY ? withHost(type, value, form, room) : form]];
}

function withHost(pod: StructType, value: Fields, security: JsonValue, room: Room): JsonValue {
  const own = pod.fields.filter(({ name }) => OF_THE_HOST.includes(name)).sort((a, b) => OF_THE_HOST.indexOf(a.name) - OF_THE_HOST.indexOf(b.name));
  if (security === null && own.every(({ name }) => value[name] === undefined)) return null;
  const host = own.map((field): [string, JsonValue] => [goNameOf(pod, field), (value[field.name] as JsonValue | undefined) ?? zeroOf(pod, field, room)]);
  return { ...Object.fromEntries(host), ...(security as JsonObject) };
}

function inServersOrder(type: StructType): readonly FieldInfo[] {
  const fields = type.fields.filter((field) => placeOf(type, field) !== SECOND_NAME && !(placeOf(type, field).startsWith("PodSpec.") && OF_THE_HOST.includes(field.name)));
  const moved = fields.filter((field) => AFTER[placeOf(type, field)] !== undefined);
  if (moved.length === 0) return fields;
  const ordered = fields.filter((field) => !moved.includes(field));
  for (const field of moved) ordered.splice(ordered.findIndex(({ name }) => name === AFTER[placeOf(type, field)]) + 1, 0, field);
  return ordered;
}

function placeOf({ goName }: StructType, { name }: FieldInfo): string { return `${goName.split(".").at(-1)}.${name}`; }

function goNameOf(struct: StructType, field: FieldInfo): string {
  const { name } = field;
  return NAMES[placeOf(struct, field)] ?? NAMES[name] ?? name.charAt(0).toUpperCase() + name.slice(1);
}

function ofType(type: Type, value: unknown, room: Room): JsonValue {
  if (value === null || typeof value !== "object") return value as JsonValue;
  switch (type.kind) {
    case "struct": return type.name.startsWith(META) ? ofMeta(type, value) : ofStruct(type, value as Fields, room);
    case "list": return (value as readonly unknown[]).map((item) => ofType(type.items, item, room));
    case "map": return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, ofType(type.values, item, room)]));
    default: return value as JsonValue;
  }
}

/** As JSON has it: without lists that are empty. */
function ofMeta(type: StructType, value: object): JsonObject {
  return Object.fromEntries(Object.entries(canonical(type, value).object).filter(([name]) => Object.hasOwn(value, name)));
}

function zeroOf(struct: StructType, field: FieldInfo, room: Room): JsonValue {
  const { type, pointer } = field;
  if (pointer && !VALUES.has(placeOf(struct, field))) return null;
  switch (type.kind) {
    case "struct": return ofStruct(type, {}, room);
    case "scalar": return type.scalar === "string" ? "" : type.scalar === "bool" ? false : type.scalar === "bytes" ? null : 0;
    case "special": return type.special === "quantity" ? "0" : type.special === "intOrString" ? 0 : null;
    default: return null;
  }
}
