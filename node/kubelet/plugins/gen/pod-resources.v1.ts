// Written by node/cri/generate.ts from pod-resources-facts.txt.
// Field names are the proto's. Absent: the proto's default. 64-bit integers are numbers: none here exceeds 2^53.
export interface AllocatableResourcesRequest {
}
export interface AllocatableResourcesResponse {
  devices?: ContainerDevices[] | undefined;
  cpu_ids?: number[] | undefined;
  memory?: ContainerMemory[] | undefined;
}
export interface ListPodResourcesRequest {
}
export interface ListPodResourcesResponse {
  pod_resources?: PodResources[] | undefined;
}
export interface PodResources {
  name?: string | undefined;
  namespace?: string | undefined;
  containers?: ContainerResources[] | undefined;
}
export interface ContainerResources {
  name?: string | undefined;
  devices?: ContainerDevices[] | undefined;
  cpu_ids?: number[] | undefined;
  memory?: ContainerMemory[] | undefined;
  dynamic_resources?: DynamicResource[] | undefined;
}
export interface ContainerMemory {
  memory_type?: string | undefined;
  size?: number | undefined;
  topology?: TopologyInfo | undefined;
}
export interface ContainerDevices {
  resource_name?: string | undefined;
  device_ids?: string[] | undefined;
  topology?: TopologyInfo | undefined;
}
export interface TopologyInfo {
  nodes?: NUMANode[] | undefined;
}
export interface NUMANode {
  ID?: number | undefined;
}
export interface DynamicResource {
  claim_name?: string | undefined;
  claim_namespace?: string | undefined;
  claim_resources?: ClaimResource[] | undefined;
}
export interface ClaimResource {
  cdi_devices?: CDIDevice[] | undefined;
  driver_name?: string | undefined;
  pool_name?: string | undefined;
  device_name?: string | undefined;
  share_id?: string | undefined;
}
export interface CDIDevice {
  name?: string | undefined;
}
export interface GetPodResourcesRequest {
  pod_name?: string | undefined;
  pod_namespace?: string | undefined;
}
export interface GetPodResourcesResponse {
  pod_resources?: PodResources | undefined;
}
export interface Methods {
  "PodResourcesLister/List": { request: ListPodResourcesRequest; response: ListPodResourcesResponse; stream: false };
  "PodResourcesLister/GetAllocatableResources": { request: AllocatableResourcesRequest; response: AllocatableResourcesResponse; stream: false };
  "PodResourcesLister/Get": { request: GetPodResourcesRequest; response: GetPodResourcesResponse; stream: false };
}
