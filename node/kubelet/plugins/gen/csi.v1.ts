// Written by node/cri/generate.ts from csi-facts.txt.
// Field names are the proto's. Absent: the proto's default. 64-bit integers are numbers: none here exceeds 2^53.
export type VolumeCapabilityAccessModeMode = "UNKNOWN" | "SINGLE_NODE_WRITER" | "SINGLE_NODE_READER_ONLY" | "MULTI_NODE_READER_ONLY" | "MULTI_NODE_SINGLE_WRITER" | "MULTI_NODE_MULTI_WRITER" | "SINGLE_NODE_SINGLE_WRITER" | "SINGLE_NODE_MULTI_WRITER";
export type VolumeUsageUnit = "UNKNOWN" | "BYTES" | "INODES";
export type NodeServiceCapabilityRPCType = "UNKNOWN" | "STAGE_UNSTAGE_VOLUME" | "GET_VOLUME_STATS" | "EXPAND_VOLUME" | "VOLUME_CONDITION" | "SINGLE_NODE_MULTI_WRITER" | "VOLUME_MOUNT_GROUP";
export interface GetPluginInfoRequest {
}
export interface GetPluginInfoResponse {
  name?: string | undefined;
  vendor_version?: string | undefined;
  manifest?: Record<string, string> | undefined;
}
export interface ProbeRequest {
}
export interface ProbeResponse {
  ready?: BoolValue | undefined;
}
export interface VolumeCapability {
  block?: VolumeCapabilityBlockVolume | undefined;
  mount?: VolumeCapabilityMountVolume | undefined;
  access_mode?: VolumeCapabilityAccessMode | undefined;
}
export interface VolumeCapabilityBlockVolume {
}
export interface VolumeCapabilityMountVolume {
  fs_type?: string | undefined;
  mount_flags?: string[] | undefined;
  volume_mount_group?: string | undefined;
}
export interface VolumeCapabilityAccessMode {
  mode?: VolumeCapabilityAccessModeMode | undefined;
}
export interface CapacityRange {
  required_bytes?: number | undefined;
  limit_bytes?: number | undefined;
}
export interface Topology {
  segments?: Record<string, string> | undefined;
}
export interface NodeStageVolumeRequest {
  volume_id?: string | undefined;
  publish_context?: Record<string, string> | undefined;
  staging_target_path?: string | undefined;
  volume_capability?: VolumeCapability | undefined;
  secrets?: Record<string, string> | undefined;
  volume_context?: Record<string, string> | undefined;
}
export interface NodeStageVolumeResponse {
}
export interface NodeUnstageVolumeRequest {
  volume_id?: string | undefined;
  staging_target_path?: string | undefined;
}
export interface NodeUnstageVolumeResponse {
}
export interface NodePublishVolumeRequest {
  volume_id?: string | undefined;
  publish_context?: Record<string, string> | undefined;
  staging_target_path?: string | undefined;
  target_path?: string | undefined;
  volume_capability?: VolumeCapability | undefined;
  readonly?: boolean | undefined;
  secrets?: Record<string, string> | undefined;
  volume_context?: Record<string, string> | undefined;
}
export interface NodePublishVolumeResponse {
}
export interface NodeUnpublishVolumeRequest {
  volume_id?: string | undefined;
  target_path?: string | undefined;
}
export interface NodeUnpublishVolumeResponse {
}
export interface NodeGetVolumeStatsRequest {
  volume_id?: string | undefined;
  volume_path?: string | undefined;
  staging_target_path?: string | undefined;
}
export interface NodeGetVolumeStatsResponse {
  usage?: VolumeUsage[] | undefined;
  volume_condition?: VolumeCondition | undefined;
}
export interface VolumeUsage {
  available?: number | undefined;
  total?: number | undefined;
  used?: number | undefined;
  unit?: VolumeUsageUnit | undefined;
}
export interface VolumeCondition {
  abnormal?: boolean | undefined;
  message?: string | undefined;
}
export interface NodeGetCapabilitiesRequest {
}
export interface NodeGetCapabilitiesResponse {
  capabilities?: NodeServiceCapability[] | undefined;
}
export interface NodeServiceCapability {
  rpc?: NodeServiceCapabilityRPC | undefined;
}
export interface NodeServiceCapabilityRPC {
  type?: NodeServiceCapabilityRPCType | undefined;
}
export interface NodeGetInfoRequest {
}
export interface NodeGetInfoResponse {
  node_id?: string | undefined;
  max_volumes_per_node?: number | undefined;
  accessible_topology?: Topology | undefined;
}
export interface NodeExpandVolumeRequest {
  volume_id?: string | undefined;
  volume_path?: string | undefined;
  capacity_range?: CapacityRange | undefined;
  staging_target_path?: string | undefined;
  volume_capability?: VolumeCapability | undefined;
  secrets?: Record<string, string> | undefined;
}
export interface NodeExpandVolumeResponse {
  capacity_bytes?: number | undefined;
}
export interface BoolValue {
  value?: boolean | undefined;
}
export interface Methods {
  "Identity/GetPluginInfo": { request: GetPluginInfoRequest; response: GetPluginInfoResponse; stream: false };
  "Identity/Probe": { request: ProbeRequest; response: ProbeResponse; stream: false };
  "Node/NodeStageVolume": { request: NodeStageVolumeRequest; response: NodeStageVolumeResponse; stream: false };
  "Node/NodeUnstageVolume": { request: NodeUnstageVolumeRequest; response: NodeUnstageVolumeResponse; stream: false };
  "Node/NodePublishVolume": { request: NodePublishVolumeRequest; response: NodePublishVolumeResponse; stream: false };
  "Node/NodeUnpublishVolume": { request: NodeUnpublishVolumeRequest; response: NodeUnpublishVolumeResponse; stream: false };
  "Node/NodeGetVolumeStats": { request: NodeGetVolumeStatsRequest; response: NodeGetVolumeStatsResponse; stream: false };
  "Node/NodeExpandVolume": { request: NodeExpandVolumeRequest; response: NodeExpandVolumeResponse; stream: false };
  "Node/NodeGetCapabilities": { request: NodeGetCapabilitiesRequest; response: NodeGetCapabilitiesResponse; stream: false };
  "Node/NodeGetInfo": { request: NodeGetInfoRequest; response: NodeGetInfoResponse; stream: false };
}
