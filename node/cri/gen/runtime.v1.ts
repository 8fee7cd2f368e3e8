// Written by node/cri/generate.ts from cri-facts.txt.
// Field names are the proto's. Absent: the proto's default. 64-bit integers are numbers: none here exceeds 2^53.
export interface VersionRequest {
  version?: string | undefined;
}
export interface VersionResponse {
  version?: string | undefined;
  runtime_name?: string | undefined;
  runtime_version?: string | undefined;
  runtime_api_version?: string | undefined;
}
export interface DNSConfig {
  servers?: string[] | undefined;
  searches?: string[] | undefined;
  options?: string[] | undefined;
}
export type Protocol = "TCP" | "UDP" | "SCTP";
export interface PortMapping {
  protocol?: Protocol | undefined;
  container_port?: number | undefined;
  host_port?: number | undefined;
  host_ip?: string | undefined;
}
export type MountPropagation = "PROPAGATION_PRIVATE" | "PROPAGATION_HOST_TO_CONTAINER" | "PROPAGATION_BIDIRECTIONAL";
export interface Mount {
  container_path?: string | undefined;
  host_path?: string | undefined;
  readonly?: boolean | undefined;
  selinux_relabel?: boolean | undefined;
  propagation?: MountPropagation | undefined;
  uidMappings?: IDMapping[] | undefined;
  gidMappings?: IDMapping[] | undefined;
  recursive_read_only?: boolean | undefined;
  image?: ImageSpec | undefined;
  image_sub_path?: string | undefined;
}
export interface IDMapping {
  host_id?: number | undefined;
  container_id?: number | undefined;
  length?: number | undefined;
}
export type NamespaceMode = "POD" | "CONTAINER" | "NODE" | "TARGET";
export interface UserNamespace {
  mode?: NamespaceMode | undefined;
  uids?: IDMapping[] | undefined;
  gids?: IDMapping[] | undefined;
}
export interface NamespaceOption {
  network?: NamespaceMode | undefined;
  pid?: NamespaceMode | undefined;
  ipc?: NamespaceMode | undefined;
  target_id?: string | undefined;
  userns_options?: UserNamespace | undefined;
}
export type SupplementalGroupsPolicy = "Merge" | "Strict";
export interface Int64Value {
  value?: number | undefined;
}
export interface LinuxSandboxSecurityContext {
  namespace_options?: NamespaceOption | undefined;
  selinux_options?: SELinuxOption | undefined;
  run_as_user?: Int64Value | undefined;
  run_as_group?: Int64Value | undefined;
  readonly_rootfs?: boolean | undefined;
  supplemental_groups?: number[] | undefined;
  supplemental_groups_policy?: SupplementalGroupsPolicy | undefined;
  privileged?: boolean | undefined;
  seccomp?: SecurityProfile | undefined;
  apparmor?: SecurityProfile | undefined;
  seccomp_profile_path?: string | undefined;
}
export interface SecurityProfile {
  profile_type?: SecurityProfileProfileType | undefined;
  localhost_ref?: string | undefined;
}
export type SecurityProfileProfileType = "RuntimeDefault" | "Unconfined" | "Localhost";
export interface LinuxPodSandboxConfig {
  cgroup_parent?: string | undefined;
  security_context?: LinuxSandboxSecurityContext | undefined;
  sysctls?: Record<string, string> | undefined;
  overhead?: LinuxContainerResources | undefined;
  resources?: LinuxContainerResources | undefined;
}
export interface PodSandboxMetadata {
  name?: string | undefined;
  uid?: string | undefined;
  namespace?: string | undefined;
  attempt?: number | undefined;
}
export interface PodSandboxConfig {
  metadata?: PodSandboxMetadata | undefined;
  hostname?: string | undefined;
  log_directory?: string | undefined;
  dns_config?: DNSConfig | undefined;
  port_mappings?: PortMapping[] | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
  linux?: LinuxPodSandboxConfig | undefined;
  windows?: WindowsPodSandboxConfig | undefined;
}
export interface RunPodSandboxRequest {
  config?: PodSandboxConfig | undefined;
  runtime_handler?: string | undefined;
}
export interface RunPodSandboxResponse {
  pod_sandbox_id?: string | undefined;
}
export interface StopPodSandboxRequest {
  pod_sandbox_id?: string | undefined;
}
export interface StopPodSandboxResponse {
}
export interface RemovePodSandboxRequest {
  pod_sandbox_id?: string | undefined;
}
export interface RemovePodSandboxResponse {
}
export interface PodSandboxStatusRequest {
  pod_sandbox_id?: string | undefined;
  verbose?: boolean | undefined;
}
export interface PodIP {
  ip?: string | undefined;
}
export interface PodSandboxNetworkStatus {
  ip?: string | undefined;
  additional_ips?: PodIP[] | undefined;
}
export interface Namespace {
  options?: NamespaceOption | undefined;
}
export interface LinuxPodSandboxStatus {
  namespaces?: Namespace | undefined;
}
export type PodSandboxState = "SANDBOX_READY" | "SANDBOX_NOTREADY";
export interface PodSandboxStatus {
  id?: string | undefined;
  metadata?: PodSandboxMetadata | undefined;
  state?: PodSandboxState | undefined;
  created_at?: number | undefined;
  network?: PodSandboxNetworkStatus | undefined;
  linux?: LinuxPodSandboxStatus | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
  runtime_handler?: string | undefined;
}
export interface PodSandboxStatusResponse {
  status?: PodSandboxStatus | undefined;
  info?: Record<string, string> | undefined;
  containers_statuses?: ContainerStatus[] | undefined;
  timestamp?: number | undefined;
}
export interface PodSandboxStateValue {
  state?: PodSandboxState | undefined;
}
export interface PodSandboxFilter {
  id?: string | undefined;
  state?: PodSandboxStateValue | undefined;
  label_selector?: Record<string, string> | undefined;
}
export interface ListPodSandboxRequest {
  filter?: PodSandboxFilter | undefined;
}
export interface PodSandbox {
  id?: string | undefined;
  metadata?: PodSandboxMetadata | undefined;
  state?: PodSandboxState | undefined;
  created_at?: number | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
  runtime_handler?: string | undefined;
}
export interface ListPodSandboxResponse {
  items?: PodSandbox[] | undefined;
}
export interface StreamPodSandboxesRequest {
  filter?: PodSandboxFilter | undefined;
}
export interface StreamPodSandboxesResponse {
  pod_sandboxes?: PodSandbox[] | undefined;
}
export interface PodSandboxStatsRequest {
  pod_sandbox_id?: string | undefined;
}
export interface PodSandboxStatsResponse {
  stats?: PodSandboxStats | undefined;
}
export interface PodSandboxStatsFilter {
  id?: string | undefined;
  label_selector?: Record<string, string> | undefined;
}
export interface ListPodSandboxStatsRequest {
  filter?: PodSandboxStatsFilter | undefined;
}
export interface ListPodSandboxStatsResponse {
  stats?: PodSandboxStats[] | undefined;
}
export interface StreamPodSandboxStatsRequest {
  filter?: PodSandboxStatsFilter | undefined;
}
export interface StreamPodSandboxStatsResponse {
  pod_sandbox_stats?: PodSandboxStats[] | undefined;
}
export interface PodSandboxAttributes {
  id?: string | undefined;
  metadata?: PodSandboxMetadata | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
}
export interface PodSandboxStats {
  attributes?: PodSandboxAttributes | undefined;
  linux?: LinuxPodSandboxStats | undefined;
  windows?: WindowsPodSandboxStats | undefined;
}
export interface LinuxPodSandboxStats {
  cpu?: CpuUsage | undefined;
  memory?: MemoryUsage | undefined;
  network?: NetworkUsage | undefined;
  process?: ProcessUsage | undefined;
  containers?: ContainerStats[] | undefined;
  io?: IoUsage | undefined;
}
export interface WindowsPodSandboxStats {
  cpu?: WindowsCpuUsage | undefined;
  memory?: WindowsMemoryUsage | undefined;
  network?: WindowsNetworkUsage | undefined;
  process?: WindowsProcessUsage | undefined;
  containers?: WindowsContainerStats[] | undefined;
}
export interface NetworkUsage {
  timestamp?: number | undefined;
  default_interface?: NetworkInterfaceUsage | undefined;
  interfaces?: NetworkInterfaceUsage[] | undefined;
}
export interface WindowsNetworkUsage {
  timestamp?: number | undefined;
  default_interface?: WindowsNetworkInterfaceUsage | undefined;
  interfaces?: WindowsNetworkInterfaceUsage[] | undefined;
}
export interface NetworkInterfaceUsage {
  name?: string | undefined;
  rx_bytes?: UInt64Value | undefined;
  rx_errors?: UInt64Value | undefined;
  tx_bytes?: UInt64Value | undefined;
  tx_errors?: UInt64Value | undefined;
}
export interface WindowsNetworkInterfaceUsage {
  name?: string | undefined;
  rx_bytes?: UInt64Value | undefined;
  rx_packets_dropped?: UInt64Value | undefined;
  tx_bytes?: UInt64Value | undefined;
  tx_packets_dropped?: UInt64Value | undefined;
}
export interface ProcessUsage {
  timestamp?: number | undefined;
  process_count?: UInt64Value | undefined;
}
export interface WindowsProcessUsage {
  timestamp?: number | undefined;
  process_count?: UInt64Value | undefined;
}
export interface ImageSpec {
  image?: string | undefined;
  annotations?: Record<string, string> | undefined;
  user_specified_image?: string | undefined;
  runtime_handler?: string | undefined;
  image_ref?: string | undefined;
}
export interface KeyValue {
  key?: string | undefined;
  value?: Uint8Array | undefined;
}
export interface LinuxContainerResources {
  cpu_period?: number | undefined;
  cpu_quota?: number | undefined;
  cpu_shares?: number | undefined;
  memory_limit_in_bytes?: number | undefined;
  oom_score_adj?: number | undefined;
  cpuset_cpus?: string | undefined;
  cpuset_mems?: string | undefined;
  hugepage_limits?: HugepageLimit[] | undefined;
  unified?: Record<string, string> | undefined;
  memory_swap_limit_in_bytes?: number | undefined;
}
export interface HugepageLimit {
  page_size?: string | undefined;
  limit?: number | undefined;
}
export interface SELinuxOption {
  user?: string | undefined;
  role?: string | undefined;
  type?: string | undefined;
  level?: string | undefined;
}
export interface Capability {
  add_capabilities?: string[] | undefined;
  drop_capabilities?: string[] | undefined;
  add_ambient_capabilities?: string[] | undefined;
}
export interface LinuxContainerSecurityContext {
  capabilities?: Capability | undefined;
  privileged?: boolean | undefined;
  namespace_options?: NamespaceOption | undefined;
  selinux_options?: SELinuxOption | undefined;
  run_as_user?: Int64Value | undefined;
  run_as_group?: Int64Value | undefined;
  run_as_username?: string | undefined;
  readonly_rootfs?: boolean | undefined;
  supplemental_groups?: number[] | undefined;
  supplemental_groups_policy?: SupplementalGroupsPolicy | undefined;
  no_new_privs?: boolean | undefined;
  masked_paths?: string[] | undefined;
  readonly_paths?: string[] | undefined;
  seccomp?: SecurityProfile | undefined;
  apparmor?: SecurityProfile | undefined;
  apparmor_profile?: string | undefined;
  seccomp_profile_path?: string | undefined;
}
export interface LinuxContainerConfig {
  resources?: LinuxContainerResources | undefined;
  security_context?: LinuxContainerSecurityContext | undefined;
}
export interface LinuxContainerUser {
  uid?: number | undefined;
  gid?: number | undefined;
  supplemental_groups?: number[] | undefined;
}
export interface WindowsNamespaceOption {
  network?: NamespaceMode | undefined;
}
export interface WindowsSandboxSecurityContext {
  run_as_username?: string | undefined;
  credential_spec?: string | undefined;
  host_process?: boolean | undefined;
  namespace_options?: WindowsNamespaceOption | undefined;
}
export interface WindowsPodSandboxConfig {
  security_context?: WindowsSandboxSecurityContext | undefined;
}
export interface WindowsContainerSecurityContext {
  run_as_username?: string | undefined;
  credential_spec?: string | undefined;
  host_process?: boolean | undefined;
}
export interface WindowsContainerConfig {
  resources?: WindowsContainerResources | undefined;
  security_context?: WindowsContainerSecurityContext | undefined;
}
export interface WindowsContainerResources {
  cpu_shares?: number | undefined;
  cpu_count?: number | undefined;
  cpu_maximum?: number | undefined;
  memory_limit_in_bytes?: number | undefined;
  rootfs_size_in_bytes?: number | undefined;
  affinity_cpus?: WindowsCpuGroupAffinity[] | undefined;
}
export interface WindowsCpuGroupAffinity {
  cpu_mask?: number | undefined;
  cpu_group?: number | undefined;
}
export interface ContainerMetadata {
  name?: string | undefined;
  attempt?: number | undefined;
}
export interface Device {
  container_path?: string | undefined;
  host_path?: string | undefined;
  permissions?: string | undefined;
}
export interface CDIDevice {
  name?: string | undefined;
}
export interface ContainerConfig {
  metadata?: ContainerMetadata | undefined;
  image?: ImageSpec | undefined;
  command?: string[] | undefined;
  args?: string[] | undefined;
  working_dir?: string | undefined;
  envs?: KeyValue[] | undefined;
  mounts?: Mount[] | undefined;
  devices?: Device[] | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
  log_path?: string | undefined;
  stdin?: boolean | undefined;
  stdin_once?: boolean | undefined;
  tty?: boolean | undefined;
  linux?: LinuxContainerConfig | undefined;
  windows?: WindowsContainerConfig | undefined;
  CDI_devices?: CDIDevice[] | undefined;
  stop_signal?: Signal | undefined;
}
export type Signal = "RUNTIME_DEFAULT" | "SIGABRT" | "SIGALRM" | "SIGBUS" | "SIGCHLD" | "SIGCLD" | "SIGCONT" | "SIGFPE" | "SIGHUP" | "SIGILL" | "SIGINT" | "SIGIO" | "SIGIOT" | "SIGKILL" | "SIGPIPE" | "SIGPOLL" | "SIGPROF" | "SIGPWR" | "SIGQUIT" | "SIGSEGV" | "SIGSTKFLT" | "SIGSTOP" | "SIGSYS" | "SIGTERM" | "SIGTRAP" | "SIGTSTP" | "SIGTTIN" | "SIGTTOU" | "SIGURG" | "SIGUSR1" | "SIGUSR2" | "SIGVTALRM" | "SIGWINCH" | "SIGXCPU" | "SIGXFSZ" | "SIGRTMIN" | "SIGRTMINPLUS1" | "SIGRTMINPLUS2" | "SIGRTMINPLUS3" | "SIGRTMINPLUS4" | "SIGRTMINPLUS5" | "SIGRTMINPLUS6" | "SIGRTMINPLUS7" | "SIGRTMINPLUS8" | "SIGRTMINPLUS9" | "SIGRTMINPLUS10" | "SIGRTMINPLUS11" | "SIGRTMINPLUS12" | "SIGRTMINPLUS13" | "SIGRTMINPLUS14" | "SIGRTMINPLUS15" | "SIGRTMAXMINUS14" | "SIGRTMAXMINUS13" | "SIGRTMAXMINUS12" | "SIGRTMAXMINUS11" | "SIGRTMAXMINUS10" | "SIGRTMAXMINUS9" | "SIGRTMAXMINUS8" | "SIGRTMAXMINUS7" | "SIGRTMAXMINUS6" | "SIGRTMAXMINUS5" | "SIGRTMAXMINUS4" | "SIGRTMAXMINUS3" | "SIGRTMAXMINUS2" | "SIGRTMAXMINUS1" | "SIGRTMAX";
export interface CreateContainerRequest {
  pod_sandbox_id?: string | undefined;
  config?: ContainerConfig | undefined;
  sandbox_config?: PodSandboxConfig | undefined;
}
export interface CreateContainerResponse {
  container_id?: string | undefined;
}
export interface StartContainerRequest {
  container_id?: string | undefined;
}
export interface StartContainerResponse {
}
export interface StopContainerRequest {
  container_id?: string | undefined;
  timeout?: number | undefined;
}
export interface StopContainerResponse {
}
export interface RemoveContainerRequest {
  container_id?: string | undefined;
}
export interface RemoveContainerResponse {
}
export type ContainerState = "CONTAINER_CREATED" | "CONTAINER_RUNNING" | "CONTAINER_EXITED" | "CONTAINER_UNKNOWN";
export interface ContainerStateValue {
  state?: ContainerState | undefined;
}
export interface ContainerFilter {
  id?: string | undefined;
  state?: ContainerStateValue | undefined;
  pod_sandbox_id?: string | undefined;
  label_selector?: Record<string, string> | undefined;
}
export interface ListContainersRequest {
  filter?: ContainerFilter | undefined;
}
export interface Container {
  id?: string | undefined;
  pod_sandbox_id?: string | undefined;
  metadata?: ContainerMetadata | undefined;
  image?: ImageSpec | undefined;
  image_ref?: string | undefined;
  state?: ContainerState | undefined;
  created_at?: number | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
  image_id?: string | undefined;
}
export interface ListContainersResponse {
  containers?: Container[] | undefined;
}
export interface StreamContainersRequest {
  filter?: ContainerFilter | undefined;
}
export interface StreamContainersResponse {
  containers?: Container[] | undefined;
}
export interface ContainerStatusRequest {
  container_id?: string | undefined;
  verbose?: boolean | undefined;
}
export interface ContainerStatus {
  id?: string | undefined;
  metadata?: ContainerMetadata | undefined;
  state?: ContainerState | undefined;
  created_at?: number | undefined;
  started_at?: number | undefined;
  finished_at?: number | undefined;
  exit_code?: number | undefined;
  image?: ImageSpec | undefined;
  image_ref?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
  mounts?: Mount[] | undefined;
  log_path?: string | undefined;
  resources?: ContainerResources | undefined;
  image_id?: string | undefined;
  user?: ContainerUser | undefined;
  stop_signal?: Signal | undefined;
}
export interface ContainerStatusResponse {
  status?: ContainerStatus | undefined;
  info?: Record<string, string> | undefined;
}
export interface ContainerResources {
  linux?: LinuxContainerResources | undefined;
  windows?: WindowsContainerResources | undefined;
}
export interface ContainerUser {
  linux?: LinuxContainerUser | undefined;
}
export interface UpdateContainerResourcesRequest {
  container_id?: string | undefined;
  linux?: LinuxContainerResources | undefined;
  windows?: WindowsContainerResources | undefined;
  annotations?: Record<string, string> | undefined;
}
export interface UpdateContainerResourcesResponse {
}
export interface ExecSyncRequest {
  container_id?: string | undefined;
  cmd?: string[] | undefined;
  timeout?: number | undefined;
}
export interface ExecSyncResponse {
  stdout?: Uint8Array | undefined;
  stderr?: Uint8Array | undefined;
  exit_code?: number | undefined;
}
export interface ExecRequest {
  container_id?: string | undefined;
  cmd?: string[] | undefined;
  tty?: boolean | undefined;
  stdin?: boolean | undefined;
  stdout?: boolean | undefined;
  stderr?: boolean | undefined;
}
export interface ExecResponse {
  url?: string | undefined;
}
export interface AttachRequest {
  container_id?: string | undefined;
  stdin?: boolean | undefined;
  tty?: boolean | undefined;
  stdout?: boolean | undefined;
  stderr?: boolean | undefined;
}
export interface AttachResponse {
  url?: string | undefined;
}
export interface PortForwardRequest {
  pod_sandbox_id?: string | undefined;
  port?: number[] | undefined;
}
export interface PortForwardResponse {
  url?: string | undefined;
}
export interface ImageFilter {
  image?: ImageSpec | undefined;
}
export interface ListImagesRequest {
  filter?: ImageFilter | undefined;
}
export interface Image {
  id?: string | undefined;
  repo_tags?: string[] | undefined;
  repo_digests?: string[] | undefined;
  size?: number | undefined;
  uid?: Int64Value | undefined;
  username?: string | undefined;
  spec?: ImageSpec | undefined;
  pinned?: boolean | undefined;
}
export interface ListImagesResponse {
  images?: Image[] | undefined;
}
export interface StreamImagesRequest {
  filter?: ImageFilter | undefined;
}
export interface StreamImagesResponse {
  images?: Image[] | undefined;
}
export interface ImageStatusRequest {
  image?: ImageSpec | undefined;
  verbose?: boolean | undefined;
}
export interface ImageStatusResponse {
  image?: Image | undefined;
  info?: Record<string, string> | undefined;
}
export interface AuthConfig {
  username?: string | undefined;
  password?: string | undefined;
  auth?: string | undefined;
  server_address?: string | undefined;
  identity_token?: string | undefined;
  registry_token?: string | undefined;
}
export interface PullImageRequest {
  image?: ImageSpec | undefined;
  auth?: AuthConfig | undefined;
  sandbox_config?: PodSandboxConfig | undefined;
}
export interface PullImageResponse {
  image_ref?: string | undefined;
}
export interface RemoveImageRequest {
  image?: ImageSpec | undefined;
}
export interface RemoveImageResponse {
}
export interface NetworkConfig {
  pod_cidr?: string | undefined;
}
export interface RuntimeConfig {
  network_config?: NetworkConfig | undefined;
}
export interface UpdateRuntimeConfigRequest {
  runtime_config?: RuntimeConfig | undefined;
}
export interface UpdateRuntimeConfigResponse {
}
export interface RuntimeCondition {
  type?: string | undefined;
  status?: boolean | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export interface RuntimeStatus {
  conditions?: RuntimeCondition[] | undefined;
}
export interface StatusRequest {
  verbose?: boolean | undefined;
}
export interface RuntimeHandlerFeatures {
  recursive_read_only_mounts?: boolean | undefined;
  user_namespaces?: boolean | undefined;
}
export interface RuntimeHandler {
  name?: string | undefined;
  features?: RuntimeHandlerFeatures | undefined;
}
export interface RuntimeFeatures {
  supplemental_groups_policy?: boolean | undefined;
  user_namespaces_host_network?: boolean | undefined;
}
export interface StatusResponse {
  status?: RuntimeStatus | undefined;
  info?: Record<string, string> | undefined;
  runtime_handlers?: RuntimeHandler[] | undefined;
  features?: RuntimeFeatures | undefined;
}
export interface ImageFsInfoRequest {
}
export interface UInt64Value {
  value?: number | undefined;
}
export interface FilesystemIdentifier {
  mountpoint?: string | undefined;
}
export interface FilesystemUsage {
  timestamp?: number | undefined;
  fs_id?: FilesystemIdentifier | undefined;
  used_bytes?: UInt64Value | undefined;
  inodes_used?: UInt64Value | undefined;
}
export interface WindowsFilesystemUsage {
  timestamp?: number | undefined;
  fs_id?: FilesystemIdentifier | undefined;
  used_bytes?: UInt64Value | undefined;
}
export interface ImageFsInfoResponse {
  image_filesystems?: FilesystemUsage[] | undefined;
  container_filesystems?: FilesystemUsage[] | undefined;
}
export interface ContainerStatsRequest {
  container_id?: string | undefined;
}
export interface ContainerStatsResponse {
  stats?: ContainerStats | undefined;
}
export interface ListContainerStatsRequest {
  filter?: ContainerStatsFilter | undefined;
}
export interface ContainerStatsFilter {
  id?: string | undefined;
  pod_sandbox_id?: string | undefined;
  label_selector?: Record<string, string> | undefined;
}
export interface ListContainerStatsResponse {
  stats?: ContainerStats[] | undefined;
}
export interface StreamContainerStatsRequest {
  filter?: ContainerStatsFilter | undefined;
}
export interface StreamContainerStatsResponse {
  container_stats?: ContainerStats[] | undefined;
}
export interface ContainerAttributes {
  id?: string | undefined;
  metadata?: ContainerMetadata | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
}
export interface ContainerStats {
  attributes?: ContainerAttributes | undefined;
  cpu?: CpuUsage | undefined;
  memory?: MemoryUsage | undefined;
  writable_layer?: FilesystemUsage | undefined;
  swap?: SwapUsage | undefined;
  io?: IoUsage | undefined;
}
export interface WindowsContainerStats {
  attributes?: ContainerAttributes | undefined;
  cpu?: WindowsCpuUsage | undefined;
  memory?: WindowsMemoryUsage | undefined;
  writable_layer?: WindowsFilesystemUsage | undefined;
}
export interface PsiStats {
  Full?: PsiData | undefined;
  Some?: PsiData | undefined;
}
export interface PsiData {
  Total?: number | undefined;
  Avg10?: number | undefined;
  Avg60?: number | undefined;
  Avg300?: number | undefined;
}
export interface CpuUsage {
  timestamp?: number | undefined;
  usage_core_nano_seconds?: UInt64Value | undefined;
  usage_nano_cores?: UInt64Value | undefined;
  psi?: PsiStats | undefined;
}
export interface WindowsCpuUsage {
  timestamp?: number | undefined;
  usage_core_nano_seconds?: UInt64Value | undefined;
  usage_nano_cores?: UInt64Value | undefined;
}
export interface MemoryUsage {
  timestamp?: number | undefined;
  working_set_bytes?: UInt64Value | undefined;
  available_bytes?: UInt64Value | undefined;
  usage_bytes?: UInt64Value | undefined;
  rss_bytes?: UInt64Value | undefined;
  page_faults?: UInt64Value | undefined;
  major_page_faults?: UInt64Value | undefined;
  psi?: PsiStats | undefined;
}
export interface IoUsage {
  timestamp?: number | undefined;
  psi?: PsiStats | undefined;
}
export interface SwapUsage {
  timestamp?: number | undefined;
  swap_available_bytes?: UInt64Value | undefined;
  swap_usage_bytes?: UInt64Value | undefined;
}
export interface WindowsMemoryUsage {
  timestamp?: number | undefined;
  working_set_bytes?: UInt64Value | undefined;
  available_bytes?: UInt64Value | undefined;
  page_faults?: UInt64Value | undefined;
  commit_memory_bytes?: UInt64Value | undefined;
}
export interface ReopenContainerLogRequest {
  container_id?: string | undefined;
}
export interface ReopenContainerLogResponse {
}
export interface CheckpointContainerRequest {
  container_id?: string | undefined;
  location?: string | undefined;
  timeout?: number | undefined;
}
export interface CheckpointContainerResponse {
}
export interface GetEventsRequest {
}
export interface ContainerEventResponse {
  container_id?: string | undefined;
  container_event_type?: ContainerEventType | undefined;
  created_at?: number | undefined;
  pod_sandbox_status?: PodSandboxStatus | undefined;
  containers_statuses?: ContainerStatus[] | undefined;
}
export type ContainerEventType = "CONTAINER_CREATED_EVENT" | "CONTAINER_STARTED_EVENT" | "CONTAINER_STOPPED_EVENT" | "CONTAINER_DELETED_EVENT";
export interface ListMetricDescriptorsRequest {
}
export interface ListMetricDescriptorsResponse {
  descriptors?: MetricDescriptor[] | undefined;
}
export interface MetricDescriptor {
  name?: string | undefined;
  help?: string | undefined;
  label_keys?: string[] | undefined;
}
export interface ListPodSandboxMetricsRequest {
}
export interface ListPodSandboxMetricsResponse {
  pod_metrics?: PodSandboxMetrics[] | undefined;
}
export interface StreamPodSandboxMetricsRequest {
}
export interface StreamPodSandboxMetricsResponse {
  pod_sandbox_metrics?: PodSandboxMetrics[] | undefined;
}
export interface PodSandboxMetrics {
  pod_sandbox_id?: string | undefined;
  metrics?: Metric[] | undefined;
  container_metrics?: ContainerMetrics[] | undefined;
}
export interface ContainerMetrics {
  container_id?: string | undefined;
  metrics?: Metric[] | undefined;
}
export interface Metric {
  name?: string | undefined;
  timestamp?: number | undefined;
  metric_type?: MetricType | undefined;
  label_values?: string[] | undefined;
  value?: UInt64Value | undefined;
}
export type MetricType = "COUNTER" | "GAUGE";
export interface RuntimeConfigRequest {
}
export interface RuntimeConfigResponse {
  linux?: LinuxRuntimeConfiguration | undefined;
}
export interface LinuxRuntimeConfiguration {
  cgroup_driver?: CgroupDriver | undefined;
}
export type CgroupDriver = "SYSTEMD" | "CGROUPFS";
export interface UpdatePodSandboxResourcesRequest {
  pod_sandbox_id?: string | undefined;
  overhead?: LinuxContainerResources | undefined;
  resources?: LinuxContainerResources | undefined;
}
export interface UpdatePodSandboxResourcesResponse {
}
export interface Methods {
  "RuntimeService/Version": { request: VersionRequest; response: VersionResponse; stream: false };
  "RuntimeService/RunPodSandbox": { request: RunPodSandboxRequest; response: RunPodSandboxResponse; stream: false };
  "RuntimeService/StopPodSandbox": { request: StopPodSandboxRequest; response: StopPodSandboxResponse; stream: false };
  "RuntimeService/RemovePodSandbox": { request: RemovePodSandboxRequest; response: RemovePodSandboxResponse; stream: false };
  "RuntimeService/PodSandboxStatus": { request: PodSandboxStatusRequest; response: PodSandboxStatusResponse; stream: false };
  "RuntimeService/ListPodSandbox": { request: ListPodSandboxRequest; response: ListPodSandboxResponse; stream: false };
  "RuntimeService/StreamPodSandboxes": { request: StreamPodSandboxesRequest; response: StreamPodSandboxesResponse; stream: true };
  "RuntimeService/CreateContainer": { request: CreateContainerRequest; response: CreateContainerResponse; stream: false };
  "RuntimeService/StartContainer": { request: StartContainerRequest; response: StartContainerResponse; stream: false };
  "RuntimeService/StopContainer": { request: StopContainerRequest; response: StopContainerResponse; stream: false };
  "RuntimeService/RemoveContainer": { request: RemoveContainerRequest; response: RemoveContainerResponse; stream: false };
  "RuntimeService/ListContainers": { request: ListContainersRequest; response: ListContainersResponse; stream: false };
  "RuntimeService/StreamContainers": { request: StreamContainersRequest; response: StreamContainersResponse; stream: true };
  "RuntimeService/ContainerStatus": { request: ContainerStatusRequest; response: ContainerStatusResponse; stream: false };
  "RuntimeService/UpdateContainerResources": { request: UpdateContainerResourcesRequest; response: UpdateContainerResourcesResponse; stream: false };
  "RuntimeService/ReopenContainerLog": { request: ReopenContainerLogRequest; response: ReopenContainerLogResponse; stream: false };
  "RuntimeService/ExecSync": { request: ExecSyncRequest; response: ExecSyncResponse; stream: false };
  "RuntimeService/Exec": { request: ExecRequest; response: ExecResponse; stream: false };
  "RuntimeService/Attach": { request: AttachRequest; response: AttachResponse; stream: false };
  "RuntimeService/PortForward": { request: PortForwardRequest; response: PortForwardResponse; stream: false };
  "RuntimeService/ContainerStats": { request: ContainerStatsRequest; response: ContainerStatsResponse; stream: false };
  "RuntimeService/ListContainerStats": { request: ListContainerStatsRequest; response: ListContainerStatsResponse; stream: false };
  "RuntimeService/StreamContainerStats": { request: StreamContainerStatsRequest; response: StreamContainerStatsResponse; stream: true };
  "RuntimeService/PodSandboxStats": { request: PodSandboxStatsRequest; response: PodSandboxStatsResponse; stream: false };
  "RuntimeService/ListPodSandboxStats": { request: ListPodSandboxStatsRequest; response: ListPodSandboxStatsResponse; stream: false };
  "RuntimeService/StreamPodSandboxStats": { request: StreamPodSandboxStatsRequest; response: StreamPodSandboxStatsResponse; stream: true };
  "RuntimeService/UpdateRuntimeConfig": { request: UpdateRuntimeConfigRequest; response: UpdateRuntimeConfigResponse; stream: false };
  "RuntimeService/Status": { request: StatusRequest; response: StatusResponse; stream: false };
  "RuntimeService/CheckpointContainer": { request: CheckpointContainerRequest; response: CheckpointContainerResponse; stream: false };
  "RuntimeService/GetContainerEvents": { request: GetEventsRequest; response: ContainerEventResponse; stream: true };
  "RuntimeService/ListMetricDescriptors": { request: ListMetricDescriptorsRequest; response: ListMetricDescriptorsResponse; stream: false };
  "RuntimeService/ListPodSandboxMetrics": { request: ListPodSandboxMetricsRequest; response: ListPodSandboxMetricsResponse; stream: false };
  "RuntimeService/StreamPodSandboxMetrics": { request: StreamPodSandboxMetricsRequest; response: StreamPodSandboxMetricsResponse; stream: true };
  "RuntimeService/RuntimeConfig": { request: RuntimeConfigRequest; response: RuntimeConfigResponse; stream: false };
  "RuntimeService/UpdatePodSandboxResources": { request: UpdatePodSandboxResourcesRequest; response: UpdatePodSandboxResourcesResponse; stream: false };
  "ImageService/ListImages": { request: ListImagesRequest; response: ListImagesResponse; stream: false };
  "ImageService/StreamImages": { request: StreamImagesRequest; response: StreamImagesResponse; stream: true };
  "ImageService/ImageStatus": { request: ImageStatusRequest; response: ImageStatusResponse; stream: false };
  "ImageService/PullImage": { request: PullImageRequest; response: PullImageResponse; stream: false };
  "ImageService/RemoveImage": { request: RemoveImageRequest; response: RemoveImageResponse; stream: false };
  "ImageService/ImageFsInfo": { request: ImageFsInfoRequest; response: ImageFsInfoResponse; stream: false };
}
