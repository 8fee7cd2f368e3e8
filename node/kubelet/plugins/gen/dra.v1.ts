// Written by node/cri/generate.ts from dra-facts.txt.
// Field names are the proto's. Absent: the proto's default. 64-bit integers are numbers: none here exceeds 2^53.
export interface NodePrepareResourcesRequest {
  claims?: Claim[] | undefined;
}
export interface NodePrepareResourcesResponse {
  claims?: Record<string, NodePrepareResourceResponse> | undefined;
}
export interface NodePrepareResourceResponse {
  devices?: Device[] | undefined;
  error?: string | undefined;
}
export interface Device {
  request_names?: string[] | undefined;
  pool_name?: string | undefined;
  device_name?: string | undefined;
  cdi_device_ids?: string[] | undefined;
  share_id?: string | undefined;
}
export interface NodeUnprepareResourcesRequest {
  claims?: Claim[] | undefined;
}
export interface NodeUnprepareResourcesResponse {
  claims?: Record<string, NodeUnprepareResourceResponse> | undefined;
}
export interface NodeUnprepareResourceResponse {
  error?: string | undefined;
}
export interface Claim {
  namespace?: string | undefined;
  uid?: string | undefined;
  name?: string | undefined;
}
export interface Methods {
  "DRAPlugin/NodePrepareResources": { request: NodePrepareResourcesRequest; response: NodePrepareResourcesResponse; stream: false };
  "DRAPlugin/NodeUnprepareResources": { request: NodeUnprepareResourcesRequest; response: NodeUnprepareResourcesResponse; stream: false };
}
