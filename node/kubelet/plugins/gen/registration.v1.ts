// Written by node/cri/generate.ts from registration-facts.txt.
// Field names are the proto's. Absent: the proto's default. 64-bit integers are numbers: none here exceeds 2^53.
export interface PluginInfo {
  type?: string | undefined;
  name?: string | undefined;
  endpoint?: string | undefined;
  supported_versions?: string[] | undefined;
}
export interface RegistrationStatus {
  plugin_registered?: boolean | undefined;
  error?: string | undefined;
}
export interface RegistrationStatusResponse {
}
export interface InfoRequest {
}
export interface Methods {
  "Registration/GetInfo": { request: InfoRequest; response: PluginInfo; stream: false };
  "Registration/NotifyRegistrationStatus": { request: RegistrationStatus; response: RegistrationStatusResponse; stream: false };
}
