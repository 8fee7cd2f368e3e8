// Written by node/cri/generate.ts from device-plugin-facts.txt.
// Field names are the proto's. Absent: the proto's default. 64-bit integers are numbers: none here exceeds 2^53.
export interface DevicePluginOptions {
  pre_start_required?: boolean | undefined;
  get_preferred_allocation_available?: boolean | undefined;
}
export interface RegisterRequest {
  version?: string | undefined;
  endpoint?: string | undefined;
  resource_name?: string | undefined;
  options?: DevicePluginOptions | undefined;
}
export interface Empty {
}
export interface ListAndWatchResponse {
  devices?: Device[] | undefined;
}
export interface TopologyInfo {
  nodes?: NUMANode[] | undefined;
}
export interface NUMANode {
  ID?: number | undefined;
}
export interface Device {
  ID?: string | undefined;
  health?: string | undefined;
  topology?: TopologyInfo | undefined;
}
export interface PreStartContainerRequest {
  devices_ids?: string[] | undefined;
}
export interface PreStartContainerResponse {
}
export interface PreferredAllocationRequest {
  container_requests?: ContainerPreferredAllocationRequest[] | undefined;
}
export interface ContainerPreferredAllocationRequest {
  available_deviceIDs?: string[] | undefined;
  must_include_deviceIDs?: string[] | undefined;
  allocation_size?: number | undefined;
}
export interface PreferredAllocationResponse {
  container_responses?: ContainerPreferredAllocationResponse[] | undefined;
}
export interface ContainerPreferredAllocationResponse {
  deviceIDs?: string[] | undefined;
}
export interface AllocateRequest {
  container_requests?: ContainerAllocateRequest[] | undefined;
}
export interface ContainerAllocateRequest {
  devices_ids?: string[] | undefined;
}
export interface CDIDevice {
  name?: string | undefined;
}
export interface AllocateResponse {
  container_responses?: ContainerAllocateResponse[] | undefined;
}
export interface ContainerAllocateResponse {
  envs?: Record<string, string> | undefined;
  mounts?: Mount[] | undefined;
  devices?: DeviceSpec[] | undefined;
  annotations?: Record<string, string> | undefined;
  cdi_devices?: CDIDevice[] | undefined;
}
export interface Mount {
  container_path?: string | undefined;
  host_path?: string | undefined;
  read_only?: boolean | undefined;
}
export interface DeviceSpec {
  container_path?: string | undefined;
  host_path?: string | undefined;
  permissions?: string | undefined;
}
export interface Methods {
  "Registration/Register": { request: RegisterRequest; response: Empty; stream: false };
  "DevicePlugin/GetDevicePluginOptions": { request: Empty; response: DevicePluginOptions; stream: false };
  "DevicePlugin/ListAndWatch": { request: Empty; response: ListAndWatchResponse; stream: true };
  "DevicePlugin/GetPreferredAllocation": { request: PreferredAllocationRequest; response: PreferredAllocationResponse; stream: false };
  "DevicePlugin/Allocate": { request: AllocateRequest; response: AllocateResponse; stream: false };
  "DevicePlugin/PreStartContainer": { request: PreStartContainerRequest; response: PreStartContainerResponse; stream: false };
}
