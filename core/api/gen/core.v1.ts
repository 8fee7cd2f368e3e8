// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { Condition, LabelSelector } from "./meta.v1.ts";
export interface AWSElasticBlockStoreVolumeSource {
  volumeID: string;
  fsType?: string | undefined;
  partition?: number | undefined;
  readOnly?: boolean | undefined;
}
export interface Affinity {
  nodeAffinity?: NodeAffinity | undefined;
  podAffinity?: PodAffinity | undefined;
  podAntiAffinity?: PodAntiAffinity | undefined;
}
export interface AppArmorProfile {
  type: AppArmorProfileType;
  localhostProfile?: string | undefined;
}
export type AppArmorProfileType = "Localhost" | "RuntimeDefault" | "Unconfined";
export interface AttachedVolume {
  name: UniqueVolumeName;
  devicePath: string;
}
export type AzureDataDiskCachingMode = "None" | "ReadOnly" | "ReadWrite";
export type AzureDataDiskKind = "Dedicated" | "Managed" | "Shared";
export interface AzureDiskVolumeSource {
  diskName: string;
  diskURI: string;
  cachingMode?: AzureDataDiskCachingMode | undefined;
  fsType?: string | undefined;
  readOnly?: boolean | undefined;
  kind?: AzureDataDiskKind | undefined;
}
export interface AzureFilePersistentVolumeSource {
  secretName: string;
  shareName: string;
  readOnly?: boolean | undefined;
  secretNamespace?: string | undefined;
}
export interface AzureFileVolumeSource {
  secretName: string;
  shareName: string;
  readOnly?: boolean | undefined;
}
export interface Binding {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  target: ObjectReference;
}
export interface CSIPersistentVolumeSource {
  driver: string;
  volumeHandle: string;
  readOnly?: boolean | undefined;
  fsType?: string | undefined;
  volumeAttributes?: Record<string, string> | undefined;
  controllerPublishSecretRef?: SecretReference | undefined;
  nodeStageSecretRef?: SecretReference | undefined;
  nodePublishSecretRef?: SecretReference | undefined;
  controllerExpandSecretRef?: SecretReference | undefined;
  nodeExpandSecretRef?: SecretReference | undefined;
}
export interface CSIVolumeSource {
  driver: string;
  readOnly?: boolean | undefined;
  fsType?: string | undefined;
  volumeAttributes?: Record<string, string> | undefined;
  nodePublishSecretRef?: LocalObjectReference | undefined;
}
export interface Capabilities {
  add?: Capability[] | undefined;
  drop?: Capability[] | undefined;
}
export type Capability = string;
export interface CephFSPersistentVolumeSource {
  monitors: string[];
  path?: string | undefined;
  user?: string | undefined;
  secretFile?: string | undefined;
  secretRef?: SecretReference | undefined;
  readOnly?: boolean | undefined;
}
export interface CephFSVolumeSource {
  monitors: string[];
  path?: string | undefined;
  user?: string | undefined;
  secretFile?: string | undefined;
  secretRef?: LocalObjectReference | undefined;
  readOnly?: boolean | undefined;
}
export interface CinderPersistentVolumeSource {
  volumeID: string;
  fsType?: string | undefined;
  readOnly?: boolean | undefined;
  secretRef?: SecretReference | undefined;
}
export interface CinderVolumeSource {
  volumeID: string;
  fsType?: string | undefined;
  readOnly?: boolean | undefined;
  secretRef?: LocalObjectReference | undefined;
}
export type ClaimResourceStatus = "ControllerResizeInProgress" | "ControllerResizeInfeasible" | "NodeResizeInProgress" | "NodeResizeInfeasible" | "NodeResizePending";
export interface ClientIPConfig {
  timeoutSeconds?: number | undefined;
}
export interface ClusterTrustBundleProjection {
  name?: string | undefined;
  signerName?: string | undefined;
  labelSelector?: LabelSelector | undefined;
  optional?: boolean | undefined;
  path: string;
}
export interface ComponentCondition {
  type: ComponentConditionType;
  status: ConditionStatus;
  message?: string | undefined;
  error?: string | undefined;
}
export type ComponentConditionType = string;
export interface ComponentStatus {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  conditions?: ComponentCondition[] | undefined;
}
export type ConditionStatus = string;
export interface ConfigMap {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  immutable?: boolean | undefined;
  data?: Record<string, string> | undefined;
  binaryData?: Record<string, string> | undefined;
}
export interface ConfigMapEnvSource extends LocalObjectReference {
  optional?: boolean | undefined;
}
export interface ConfigMapKeySelector extends LocalObjectReference {
  key: string;
  optional?: boolean | undefined;
}
export interface ConfigMapNodeConfigSource {
  namespace: string;
  name: string;
  uid?: string | undefined;
  resourceVersion?: string | undefined;
  kubeletConfigKey: string;
}
export interface ConfigMapProjection extends LocalObjectReference {
  items?: KeyToPath[] | undefined;
  optional?: boolean | undefined;
}
export interface ConfigMapVolumeSource extends LocalObjectReference {
  items?: KeyToPath[] | undefined;
  defaultMode?: number | undefined;
  optional?: boolean | undefined;
}
export interface Container {
  name: string;
  image?: string | undefined;
  command?: string[] | undefined;
  args?: string[] | undefined;
  workingDir?: string | undefined;
  ports?: ContainerPort[] | undefined;
  envFrom?: EnvFromSource[] | undefined;
  env?: EnvVar[] | undefined;
  resources?: ResourceRequirements | undefined;
  resizePolicy?: ContainerResizePolicy[] | undefined;
  restartPolicy?: ContainerRestartPolicy | undefined;
  restartPolicyRules?: ContainerRestartRule[] | undefined;
  volumeMounts?: VolumeMount[] | undefined;
  volumeDevices?: VolumeDevice[] | undefined;
  livenessProbe?: Probe | undefined;
  readinessProbe?: Probe | undefined;
  startupProbe?: Probe | undefined;
  lifecycle?: Lifecycle | undefined;
  terminationMessagePath?: string | undefined;
  terminationMessagePolicy?: TerminationMessagePolicy | undefined;
  imagePullPolicy?: PullPolicy | undefined;
  securityContext?: SecurityContext | undefined;
  stdin?: boolean | undefined;
  stdinOnce?: boolean | undefined;
  tty?: boolean | undefined;
}
export interface ContainerExtendedResourceRequest {
  containerName: string;
  resourceName: string;
  requestName: string;
}
export interface ContainerImage {
  names?: string[] | undefined;
  sizeBytes?: number | undefined;
}
export interface ContainerPort {
  name?: string | undefined;
  hostPort?: number | undefined;
  containerPort: number;
  protocol?: Protocol | undefined;
  hostIP?: string | undefined;
}
export interface ContainerResizePolicy {
  resourceName: ResourceName;
  restartPolicy: ResourceResizeRestartPolicy;
}
export type ContainerRestartPolicy = string;
export interface ContainerRestartRule {
  action?: ContainerRestartRuleAction | undefined;
  exitCodes?: ContainerRestartRuleOnExitCodes | undefined;
}
export type ContainerRestartRuleAction = string;
export interface ContainerRestartRuleOnExitCodes {
  operator?: ContainerRestartRuleOnExitCodesOperator | undefined;
  values?: number[] | undefined;
}
export type ContainerRestartRuleOnExitCodesOperator = string;
export interface ContainerState {
  waiting?: ContainerStateWaiting | undefined;
  running?: ContainerStateRunning | undefined;
  terminated?: ContainerStateTerminated | undefined;
}
export interface ContainerStateRunning {
  startedAt?: string | undefined;
}
export interface ContainerStateTerminated {
  exitCode: number;
  signal?: number | undefined;
  reason?: string | undefined;
  message?: string | undefined;
  startedAt?: string | undefined;
  finishedAt?: string | undefined;
  containerID?: string | undefined;
}
export interface ContainerStateWaiting {
  reason?: string | undefined;
  message?: string | undefined;
}
export interface ContainerStatus {
  name: string;
  state?: ContainerState | undefined;
  lastState?: ContainerState | undefined;
  ready: boolean;
  restartCount: number;
  image: string;
  imageID: string;
  containerID?: string | undefined;
  started?: boolean | undefined;
  allocatedResources?: ResourceList | undefined;
  resources?: ResourceRequirements | undefined;
  volumeMounts?: VolumeMountStatus[] | undefined;
  user?: ContainerUser | undefined;
  allocatedResourcesStatus?: ResourceStatus[] | undefined;
  stopSignal?: Signal | undefined;
}
export interface ContainerUser {
  linux?: LinuxContainerUser | undefined;
}
export type DNSPolicy = "ClusterFirst" | "ClusterFirstWithHostNet" | "Default" | "None";
export interface DaemonEndpoint {
  Port: number;
}
export interface DownwardAPIProjection {
  items?: DownwardAPIVolumeFile[] | undefined;
}
export interface DownwardAPIVolumeFile {
  path: string;
  fieldRef?: ObjectFieldSelector | undefined;
  resourceFieldRef?: ResourceFieldSelector | undefined;
  mode?: number | undefined;
}
export interface DownwardAPIVolumeSource {
  items?: DownwardAPIVolumeFile[] | undefined;
  defaultMode?: number | undefined;
}
export interface EmptyDirVolumeSource {
  medium?: StorageMedium | undefined;
  sizeLimit?: string | undefined;
}
export interface EndpointAddress {
  ip: string;
  hostname?: string | undefined;
  nodeName?: string | undefined;
  targetRef?: ObjectReference | undefined;
}
export interface EndpointPort {
  name?: string | undefined;
  port: number;
  protocol?: Protocol | undefined;
  appProtocol?: string | undefined;
}
export interface EndpointSubset {
  addresses?: EndpointAddress[] | undefined;
  notReadyAddresses?: EndpointAddress[] | undefined;
  ports?: EndpointPort[] | undefined;
}
export interface Endpoints {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  subsets?: EndpointSubset[] | undefined;
}
export interface EnvFromSource {
  prefix?: string | undefined;
  configMapRef?: ConfigMapEnvSource | undefined;
  secretRef?: SecretEnvSource | undefined;
}
export interface EnvVar {
  name: string;
  value?: string | undefined;
  valueFrom?: EnvVarSource | undefined;
}
export interface EnvVarSource {
  fieldRef?: ObjectFieldSelector | undefined;
  resourceFieldRef?: ResourceFieldSelector | undefined;
  configMapKeyRef?: ConfigMapKeySelector | undefined;
  secretKeyRef?: SecretKeySelector | undefined;
  fileKeyRef?: FileKeySelector | undefined;
}
export interface EphemeralContainer extends EphemeralContainerCommon {
  targetContainerName?: string | undefined;
}
export interface EphemeralContainerCommon {
  name: string;
  image?: string | undefined;
  command?: string[] | undefined;
  args?: string[] | undefined;
  workingDir?: string | undefined;
  ports?: ContainerPort[] | undefined;
  envFrom?: EnvFromSource[] | undefined;
  env?: EnvVar[] | undefined;
  resources?: ResourceRequirements | undefined;
  resizePolicy?: ContainerResizePolicy[] | undefined;
  restartPolicy?: ContainerRestartPolicy | undefined;
  restartPolicyRules?: ContainerRestartRule[] | undefined;
  volumeMounts?: VolumeMount[] | undefined;
  volumeDevices?: VolumeDevice[] | undefined;
  livenessProbe?: Probe | undefined;
  readinessProbe?: Probe | undefined;
  startupProbe?: Probe | undefined;
  lifecycle?: Lifecycle | undefined;
  terminationMessagePath?: string | undefined;
  terminationMessagePolicy?: TerminationMessagePolicy | undefined;
  imagePullPolicy?: PullPolicy | undefined;
  securityContext?: SecurityContext | undefined;
  stdin?: boolean | undefined;
  stdinOnce?: boolean | undefined;
  tty?: boolean | undefined;
}
export interface EphemeralVolumeSource {
  volumeClaimTemplate?: PersistentVolumeClaimTemplate | undefined;
}
export interface Event {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  involvedObject: ObjectReference;
  reason?: string | undefined;
  message?: string | undefined;
  source?: EventSource | undefined;
  firstTimestamp?: string | undefined;
  lastTimestamp?: string | undefined;
  count?: number | undefined;
  type?: string | undefined;
  eventTime?: string | undefined;
  series?: EventSeries | undefined;
  action?: string | undefined;
  related?: ObjectReference | undefined;
  reportingComponent?: string | undefined;
  reportingInstance?: string | undefined;
}
export interface EventSeries {
  count?: number | undefined;
  lastObservedTime?: string | undefined;
}
export interface EventSource {
  component?: string | undefined;
  host?: string | undefined;
}
export interface ExecAction {
  command?: string[] | undefined;
}
export interface FCVolumeSource {
  targetWWNs?: string[] | undefined;
  lun?: number | undefined;
  fsType?: string | undefined;
  readOnly?: boolean | undefined;
  wwids?: string[] | undefined;
}
export interface FileKeySelector {
  volumeName: string;
  path: string;
  key: string;
  optional?: boolean | undefined;
}
export type FinalizerName = string;
export interface FlexPersistentVolumeSource {
  driver: string;
  fsType?: string | undefined;
  secretRef?: SecretReference | undefined;
  readOnly?: boolean | undefined;
  options?: Record<string, string> | undefined;
}
export interface FlexVolumeSource {
  driver: string;
  fsType?: string | undefined;
  secretRef?: LocalObjectReference | undefined;
  readOnly?: boolean | undefined;
  options?: Record<string, string> | undefined;
}
export interface FlockerVolumeSource {
  datasetName?: string | undefined;
  datasetUUID?: string | undefined;
}
export interface GCEPersistentDiskVolumeSource {
  pdName: string;
  fsType?: string | undefined;
  partition?: number | undefined;
  readOnly?: boolean | undefined;
}
export interface GRPCAction {
  port: number;
  service?: string | undefined;
}
export interface GitRepoVolumeSource {
  repository: string;
  revision?: string | undefined;
  directory?: string | undefined;
}
export interface GlusterfsPersistentVolumeSource {
  endpoints: string;
  path: string;
  readOnly?: boolean | undefined;
  endpointsNamespace?: string | undefined;
}
export interface GlusterfsVolumeSource {
  endpoints: string;
  path: string;
  readOnly?: boolean | undefined;
}
export interface HTTPGetAction {
  path?: string | undefined;
  port: number | string;
  host?: string | undefined;
  scheme?: URIScheme | undefined;
  httpHeaders?: HTTPHeader[] | undefined;
}
export interface HTTPHeader {
  name: string;
  value: string;
}
export interface HostAlias {
  ip: string;
  hostnames?: string[] | undefined;
}
export interface HostIP {
  ip: string;
}
export type HostPathType = "" | "BlockDevice" | "CharDevice" | "Directory" | "DirectoryOrCreate" | "File" | "FileOrCreate" | "Socket";
export interface HostPathVolumeSource {
  path: string;
  type?: HostPathType | undefined;
}
export type IPFamily = "" | "IPv4" | "IPv6";
export type IPFamilyPolicy = "PreferDualStack" | "RequireDualStack" | "SingleStack";
export interface ISCSIPersistentVolumeSource {
  targetPortal: string;
  iqn: string;
  lun: number;
  iscsiInterface?: string | undefined;
  fsType?: string | undefined;
  readOnly?: boolean | undefined;
  portals?: string[] | undefined;
  chapAuthDiscovery?: boolean | undefined;
  chapAuthSession?: boolean | undefined;
  secretRef?: SecretReference | undefined;
  initiatorName?: string | undefined;
}
export interface ISCSIVolumeSource {
  targetPortal: string;
  iqn: string;
  lun: number;
  iscsiInterface?: string | undefined;
  fsType?: string | undefined;
  readOnly?: boolean | undefined;
  portals?: string[] | undefined;
  chapAuthDiscovery?: boolean | undefined;
  chapAuthSession?: boolean | undefined;
  secretRef?: LocalObjectReference | undefined;
  initiatorName?: string | undefined;
}
export interface ImageVolumeSource {
  reference?: string | undefined;
  pullPolicy?: PullPolicy | undefined;
}
export interface ImageVolumeStatus {
  imageRef?: string | undefined;
}
export interface KeyToPath {
  key: string;
  path: string;
  mode?: number | undefined;
}
export interface Lifecycle {
  postStart?: LifecycleHandler | undefined;
  preStop?: LifecycleHandler | undefined;
  stopSignal?: Signal | undefined;
}
export interface LifecycleHandler {
  exec?: ExecAction | undefined;
  httpGet?: HTTPGetAction | undefined;
  tcpSocket?: TCPSocketAction | undefined;
  sleep?: SleepAction | undefined;
}
export interface LimitRange {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: LimitRangeSpec;
}
export interface LimitRangeItem {
  type: LimitType;
  max?: ResourceList | undefined;
  min?: ResourceList | undefined;
  default?: ResourceList | undefined;
  defaultRequest?: ResourceList | undefined;
  maxLimitRequestRatio?: ResourceList | undefined;
}
export interface LimitRangeSpec {
  limits: LimitRangeItem[];
}
export type LimitType = string;
export interface LinuxContainerUser {
  uid: number;
  gid: number;
  supplementalGroups?: number[] | undefined;
}
export type LoadBalancerIPMode = string;
export interface LoadBalancerIngress {
  ip?: string | undefined;
  hostname?: string | undefined;
  ipMode?: LoadBalancerIPMode | undefined;
  ports?: PortStatus[] | undefined;
}
export interface LoadBalancerStatus {
  ingress?: LoadBalancerIngress[] | undefined;
}
export interface LocalObjectReference {
  name?: string | undefined;
}
export interface LocalVolumeSource {
  path: string;
  fsType?: string | undefined;
}
export interface ModifyVolumeStatus {
  targetVolumeAttributesClassName?: string | undefined;
  status: PersistentVolumeClaimModifyVolumeStatus;
}
export type MountPropagationMode = "Bidirectional" | "HostToContainer" | "None";
export interface NFSVolumeSource {
  server: string;
  path: string;
  readOnly?: boolean | undefined;
}
export interface Namespace {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: NamespaceSpec;
  status?: NamespaceStatus | undefined;
}
export interface NamespaceCondition {
  type: NamespaceConditionType;
  status: ConditionStatus;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export type NamespaceConditionType = string;
export type NamespacePhase = "Active" | "Terminating";
export interface NamespaceSpec {
  finalizers?: FinalizerName[] | undefined;
}
export interface NamespaceStatus {
  phase?: NamespacePhase | undefined;
  conditions?: NamespaceCondition[] | undefined;
}
export interface Node {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: NodeSpec;
  status?: NodeStatus | undefined;
}
export interface NodeAddress {
  type: NodeAddressType;
  address: string;
}
export type NodeAddressType = string;
export interface NodeAffinity {
  requiredDuringSchedulingIgnoredDuringExecution?: NodeSelector | undefined;
  preferredDuringSchedulingIgnoredDuringExecution?: PreferredSchedulingTerm[] | undefined;
}
export interface NodeAllocatableResourceClaimStatus {
  resourceClaimName: string;
  containers?: string[] | undefined;
  resources: Record<string, string>;
}
export interface NodeCondition {
  type: NodeConditionType;
  status: ConditionStatus;
  lastHeartbeatTime?: string | undefined;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export type NodeConditionType = string;
export interface NodeConfigSource {
  configMap?: ConfigMapNodeConfigSource | undefined;
}
export interface NodeConfigStatus {
  assigned?: NodeConfigSource | undefined;
  active?: NodeConfigSource | undefined;
  lastKnownGood?: NodeConfigSource | undefined;
  error?: string | undefined;
}
export interface NodeDaemonEndpoints {
  kubeletEndpoint?: DaemonEndpoint | undefined;
}
export interface NodeFeatures {
  supplementalGroupsPolicy?: boolean | undefined;
}
export type NodeInclusionPolicy = "Honor" | "Ignore";
export type NodePhase = "Pending" | "Running" | "Terminated";
export interface NodeProxyOptions {
  apiVersion: string;
  kind: string;
  path?: string | undefined;
}
export interface NodeRuntimeHandler {
  name?: string | undefined;
  features?: NodeRuntimeHandlerFeatures | undefined;
}
export interface NodeRuntimeHandlerFeatures {
  recursiveReadOnlyMounts?: boolean | undefined;
  userNamespaces?: boolean | undefined;
}
export interface NodeSelector {
  nodeSelectorTerms: NodeSelectorTerm[];
}
export type NodeSelectorOperator = "DoesNotExist" | "Exists" | "Gt" | "In" | "Lt" | "NotIn";
export interface NodeSelectorRequirement {
  key: string;
  operator: NodeSelectorOperator;
  values?: string[] | undefined;
}
export interface NodeSelectorTerm {
  matchExpressions?: NodeSelectorRequirement[] | undefined;
  matchFields?: NodeSelectorRequirement[] | undefined;
}
export interface NodeSpec {
  podCIDR?: string | undefined;
  podCIDRs?: string[] | undefined;
  providerID?: string | undefined;
  unschedulable?: boolean | undefined;
  taints?: Taint[] | undefined;
  configSource?: NodeConfigSource | undefined;
  externalID?: string | undefined;
}
export interface NodeStatus {
  capacity?: ResourceList | undefined;
  allocatable?: ResourceList | undefined;
  phase?: NodePhase | undefined;
  conditions?: NodeCondition[] | undefined;
  addresses?: NodeAddress[] | undefined;
  daemonEndpoints?: NodeDaemonEndpoints | undefined;
  nodeInfo?: NodeSystemInfo | undefined;
  images?: ContainerImage[] | undefined;
  volumesInUse?: UniqueVolumeName[] | undefined;
  volumesAttached?: AttachedVolume[] | undefined;
  config?: NodeConfigStatus | undefined;
  runtimeHandlers?: NodeRuntimeHandler[] | undefined;
  features?: NodeFeatures | undefined;
  declaredFeatures?: string[] | undefined;
}
export interface NodeSwapStatus {
  capacity?: number | undefined;
}
export interface NodeSystemInfo {
  machineID: string;
  systemUUID: string;
  bootID: string;
  kernelVersion: string;
  osImage: string;
  containerRuntimeVersion: string;
  kubeletVersion: string;
  kubeProxyVersion: string;
  operatingSystem: string;
  architecture: string;
  swap?: NodeSwapStatus | undefined;
}
export type OSName = string;
export interface ObjectFieldSelector {
  apiVersion?: string | undefined;
  fieldPath: string;
}
export interface ObjectReference {
  kind?: string | undefined;
  namespace?: string | undefined;
  name?: string | undefined;
  uid?: string | undefined;
  apiVersion?: string | undefined;
  resourceVersion?: string | undefined;
  fieldPath?: string | undefined;
}
export interface PersistentVolume {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: PersistentVolumeSpec;
  status?: PersistentVolumeStatus | undefined;
}
export type PersistentVolumeAccessMode = "ReadOnlyMany" | "ReadWriteMany" | "ReadWriteOnce" | "ReadWriteOncePod";
export interface PersistentVolumeClaim {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: PersistentVolumeClaimSpec;
  status?: PersistentVolumeClaimStatus | undefined;
}
export interface PersistentVolumeClaimCondition {
  type: PersistentVolumeClaimConditionType;
  status: ConditionStatus;
  lastProbeTime?: string | undefined;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export type PersistentVolumeClaimConditionType = string;
export type PersistentVolumeClaimModifyVolumeStatus = "InProgress" | "Infeasible" | "Pending";
export type PersistentVolumeClaimPhase = "Bound" | "Lost" | "Pending";
export interface PersistentVolumeClaimSpec {
  accessModes?: PersistentVolumeAccessMode[] | undefined;
  selector?: LabelSelector | undefined;
  resources?: VolumeResourceRequirements | undefined;
  volumeName?: string | undefined;
  storageClassName?: string | undefined;
  volumeMode?: PersistentVolumeMode | undefined;
  dataSource?: TypedLocalObjectReference | undefined;
  dataSourceRef?: TypedObjectReference | undefined;
  volumeAttributesClassName?: string | undefined;
}
export interface PersistentVolumeClaimStatus {
  phase?: PersistentVolumeClaimPhase | undefined;
  accessModes?: PersistentVolumeAccessMode[] | undefined;
  capacity?: ResourceList | undefined;
  conditions?: PersistentVolumeClaimCondition[] | undefined;
  allocatedResources?: ResourceList | undefined;
  allocatedResourceStatuses?: Record<string, ClaimResourceStatus> | undefined;
  currentVolumeAttributesClassName?: string | undefined;
  modifyVolumeStatus?: ModifyVolumeStatus | undefined;
}
export interface PersistentVolumeClaimTemplate {
  metadata?: Partial<ObjectMeta> | undefined;
  spec: PersistentVolumeClaimSpec;
}
export interface PersistentVolumeClaimVolumeSource {
  claimName: string;
  readOnly?: boolean | undefined;
}
export type PersistentVolumeMode = "Block" | "Filesystem";
export type PersistentVolumePhase = "Available" | "Bound" | "Failed" | "Pending" | "Released";
export type PersistentVolumeReclaimPolicy = "Delete" | "Recycle" | "Retain";
export interface PersistentVolumeSource {
  gcePersistentDisk?: GCEPersistentDiskVolumeSource | undefined;
  awsElasticBlockStore?: AWSElasticBlockStoreVolumeSource | undefined;
  hostPath?: HostPathVolumeSource | undefined;
  glusterfs?: GlusterfsPersistentVolumeSource | undefined;
  nfs?: NFSVolumeSource | undefined;
  rbd?: RBDPersistentVolumeSource | undefined;
  iscsi?: ISCSIPersistentVolumeSource | undefined;
  cinder?: CinderPersistentVolumeSource | undefined;
  cephfs?: CephFSPersistentVolumeSource | undefined;
  fc?: FCVolumeSource | undefined;
  flocker?: FlockerVolumeSource | undefined;
  flexVolume?: FlexPersistentVolumeSource | undefined;
  azureFile?: AzureFilePersistentVolumeSource | undefined;
  vsphereVolume?: VsphereVirtualDiskVolumeSource | undefined;
  quobyte?: QuobyteVolumeSource | undefined;
  azureDisk?: AzureDiskVolumeSource | undefined;
  photonPersistentDisk?: PhotonPersistentDiskVolumeSource | undefined;
  portworxVolume?: PortworxVolumeSource | undefined;
  scaleIO?: ScaleIOPersistentVolumeSource | undefined;
  local?: LocalVolumeSource | undefined;
  storageos?: StorageOSPersistentVolumeSource | undefined;
  csi?: CSIPersistentVolumeSource | undefined;
}
export interface PersistentVolumeSpec extends PersistentVolumeSource {
  capacity?: ResourceList | undefined;
  accessModes?: PersistentVolumeAccessMode[] | undefined;
  claimRef?: ObjectReference | undefined;
  persistentVolumeReclaimPolicy?: PersistentVolumeReclaimPolicy | undefined;
  storageClassName?: string | undefined;
  mountOptions?: string[] | undefined;
  volumeMode?: PersistentVolumeMode | undefined;
  nodeAffinity?: VolumeNodeAffinity | undefined;
  volumeAttributesClassName?: string | undefined;
}
export interface PersistentVolumeStatus {
  phase?: PersistentVolumePhase | undefined;
  message?: string | undefined;
  reason?: string | undefined;
  lastPhaseTransitionTime?: string | undefined;
}
export interface PhotonPersistentDiskVolumeSource {
  pdID: string;
  fsType?: string | undefined;
}
export interface Pod {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: PodSpec;
  status?: PodStatus | undefined;
}
export interface PodAffinity {
  requiredDuringSchedulingIgnoredDuringExecution?: PodAffinityTerm[] | undefined;
  preferredDuringSchedulingIgnoredDuringExecution?: WeightedPodAffinityTerm[] | undefined;
}
export interface PodAffinityTerm {
  labelSelector?: LabelSelector | undefined;
  namespaces?: string[] | undefined;
  topologyKey: string;
  namespaceSelector?: LabelSelector | undefined;
  matchLabelKeys?: string[] | undefined;
  mismatchLabelKeys?: string[] | undefined;
}
export interface PodAntiAffinity {
  requiredDuringSchedulingIgnoredDuringExecution?: PodAffinityTerm[] | undefined;
  preferredDuringSchedulingIgnoredDuringExecution?: WeightedPodAffinityTerm[] | undefined;
}
export interface PodAttachOptions {
  apiVersion: string;
  kind: string;
  stdin?: boolean | undefined;
  stdout?: boolean | undefined;
  stderr?: boolean | undefined;
  tty?: boolean | undefined;
  container?: string | undefined;
}
export interface PodCertificateProjection {
  signerName?: string | undefined;
  keyType?: string | undefined;
  maxExpirationSeconds?: number | undefined;
  credentialBundlePath?: string | undefined;
  keyPath?: string | undefined;
  certificateChainPath?: string | undefined;
  userAnnotations?: Record<string, string> | undefined;
}
export interface PodCondition {
  type: PodConditionType;
  observedGeneration?: number | undefined;
  status: ConditionStatus;
  lastProbeTime?: string | undefined;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export type PodConditionType = string;
export interface PodDNSConfig {
  nameservers?: string[] | undefined;
  searches?: string[] | undefined;
  options?: PodDNSConfigOption[] | undefined;
}
export interface PodDNSConfigOption {
  name?: string | undefined;
  value?: string | undefined;
}
export interface PodExecOptions {
  apiVersion: string;
  kind: string;
  stdin?: boolean | undefined;
  stdout?: boolean | undefined;
  stderr?: boolean | undefined;
  tty?: boolean | undefined;
  container?: string | undefined;
  command: string[];
}
export interface PodExtendedResourceClaimStatus {
  requestMappings: ContainerExtendedResourceRequest[];
  resourceClaimName: string;
}
export type PodFSGroupChangePolicy = "Always" | "OnRootMismatch";
export interface PodIP {
  ip: string;
}
export interface PodLogOptions {
  apiVersion: string;
  kind: string;
  container?: string | undefined;
  follow?: boolean | undefined;
  previous?: boolean | undefined;
  sinceSeconds?: number | undefined;
  sinceTime?: string | undefined;
  timestamps?: boolean | undefined;
  tailLines?: number | undefined;
  limitBytes?: number | undefined;
  insecureSkipTLSVerifyBackend?: boolean | undefined;
  stream?: string | undefined;
}
export interface PodOS {
  name: OSName;
}
export type PodPhase = "Failed" | "Pending" | "Running" | "Succeeded" | "Unknown";
export interface PodPortForwardOptions {
  apiVersion: string;
  kind: string;
  ports?: number[] | undefined;
}
export interface PodProxyOptions {
  apiVersion: string;
  kind: string;
  path?: string | undefined;
}
export type PodQOSClass = "BestEffort" | "Burstable" | "Guaranteed";
export interface PodReadinessGate {
  conditionType: PodConditionType;
}
export type PodResizeStatus = string;
export interface PodResourceClaim {
  name: string;
  resourceClaimName?: string | undefined;
  resourceClaimTemplateName?: string | undefined;
}
export interface PodResourceClaimStatus {
  name: string;
  resourceClaimName?: string | undefined;
}
export type PodSELinuxChangePolicy = string;
export interface PodSchedulingGate {
  name: string;
}
export interface PodSchedulingGroup {
  podGroupName?: string | undefined;
}
export interface PodSecurityContext {
  seLinuxOptions?: SELinuxOptions | undefined;
  windowsOptions?: WindowsSecurityContextOptions | undefined;
  runAsUser?: number | undefined;
  runAsGroup?: number | undefined;
  runAsNonRoot?: boolean | undefined;
  supplementalGroups?: number[] | undefined;
  supplementalGroupsPolicy?: SupplementalGroupsPolicy | undefined;
  fsGroup?: number | undefined;
  sysctls?: Sysctl[] | undefined;
  fsGroupChangePolicy?: PodFSGroupChangePolicy | undefined;
  seccompProfile?: SeccompProfile | undefined;
  appArmorProfile?: AppArmorProfile | undefined;
  seLinuxChangePolicy?: PodSELinuxChangePolicy | undefined;
}
export interface PodSpec {
  volumes?: Volume[] | undefined;
  initContainers?: Container[] | undefined;
  containers: Container[];
  ephemeralContainers?: EphemeralContainer[] | undefined;
  restartPolicy?: RestartPolicy | undefined;
  terminationGracePeriodSeconds?: number | undefined;
  activeDeadlineSeconds?: number | undefined;
  dnsPolicy?: DNSPolicy | undefined;
  nodeSelector?: Record<string, string> | undefined;
  serviceAccountName?: string | undefined;
  serviceAccount?: string | undefined;
  automountServiceAccountToken?: boolean | undefined;
  nodeName?: string | undefined;
  hostNetwork?: boolean | undefined;
  hostPID?: boolean | undefined;
  hostIPC?: boolean | undefined;
  shareProcessNamespace?: boolean | undefined;
  securityContext?: PodSecurityContext | undefined;
  imagePullSecrets?: LocalObjectReference[] | undefined;
  hostname?: string | undefined;
  subdomain?: string | undefined;
  affinity?: Affinity | undefined;
  schedulerName?: string | undefined;
  tolerations?: Toleration[] | undefined;
  hostAliases?: HostAlias[] | undefined;
  priorityClassName?: string | undefined;
  priority?: number | undefined;
  dnsConfig?: PodDNSConfig | undefined;
  readinessGates?: PodReadinessGate[] | undefined;
  runtimeClassName?: string | undefined;
  enableServiceLinks?: boolean | undefined;
  preemptionPolicy?: PreemptionPolicy | undefined;
  overhead?: ResourceList | undefined;
  topologySpreadConstraints?: TopologySpreadConstraint[] | undefined;
  setHostnameAsFQDN?: boolean | undefined;
  os?: PodOS | undefined;
  hostUsers?: boolean | undefined;
  schedulingGates?: PodSchedulingGate[] | undefined;
  resourceClaims?: PodResourceClaim[] | undefined;
  resources?: ResourceRequirements | undefined;
  hostnameOverride?: string | undefined;
  schedulingGroup?: PodSchedulingGroup | undefined;
}
export interface PodStatus {
  observedGeneration?: number | undefined;
  phase?: PodPhase | undefined;
  conditions?: PodCondition[] | undefined;
  message?: string | undefined;
  reason?: string | undefined;
  nominatedNodeName?: string | undefined;
  hostIP?: string | undefined;
  hostIPs?: HostIP[] | undefined;
  podIP?: string | undefined;
  podIPs?: PodIP[] | undefined;
  startTime?: string | undefined;
  initContainerStatuses?: ContainerStatus[] | undefined;
  containerStatuses?: ContainerStatus[] | undefined;
  qosClass?: PodQOSClass | undefined;
  ephemeralContainerStatuses?: ContainerStatus[] | undefined;
  resize?: PodResizeStatus | undefined;
  resourceClaimStatuses?: PodResourceClaimStatus[] | undefined;
  extendedResourceClaimStatus?: PodExtendedResourceClaimStatus | undefined;
  allocatedResources?: ResourceList | undefined;
  resources?: ResourceRequirements | undefined;
  nodeAllocatableResourceClaimStatuses?: NodeAllocatableResourceClaimStatus[] | undefined;
}
export interface PodStatusResult {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  status?: PodStatus | undefined;
}
export interface PodTemplate {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  template?: PodTemplateSpec | undefined;
}
export interface PodTemplateSpec {
  metadata?: Partial<ObjectMeta> | undefined;
  spec?: PodSpec | undefined;
}
export interface PortStatus {
  port: number;
  protocol: Protocol;
  error?: string | undefined;
}
export interface PortworxVolumeSource {
  volumeID: string;
  fsType?: string | undefined;
  readOnly?: boolean | undefined;
}
export type PreemptionPolicy = "Never" | "PreemptLowerPriority";
export interface PreferredSchedulingTerm {
  weight: number;
  preference: NodeSelectorTerm;
}
export interface Probe extends ProbeHandler {
  initialDelaySeconds?: number | undefined;
  timeoutSeconds?: number | undefined;
  periodSeconds?: number | undefined;
  successThreshold?: number | undefined;
  failureThreshold?: number | undefined;
  terminationGracePeriodSeconds?: number | undefined;
}
export interface ProbeHandler {
  exec?: ExecAction | undefined;
  httpGet?: HTTPGetAction | undefined;
  tcpSocket?: TCPSocketAction | undefined;
  grpc?: GRPCAction | undefined;
}
export type ProcMountType = "Default" | "Unmasked";
export interface ProjectedVolumeSource {
  sources?: VolumeProjection[] | undefined;
  defaultMode?: number | undefined;
}
export type Protocol = "SCTP" | "TCP" | "UDP";
export type PullPolicy = "Always" | "IfNotPresent" | "Never";
export interface QuobyteVolumeSource {
  registry: string;
  volume: string;
  readOnly?: boolean | undefined;
  user?: string | undefined;
  group?: string | undefined;
  tenant?: string | undefined;
}
export interface RBDPersistentVolumeSource {
  monitors: string[];
  image: string;
  fsType?: string | undefined;
  pool?: string | undefined;
  user?: string | undefined;
  keyring?: string | undefined;
  secretRef?: SecretReference | undefined;
  readOnly?: boolean | undefined;
}
export interface RBDVolumeSource {
  monitors: string[];
  image: string;
  fsType?: string | undefined;
  pool?: string | undefined;
  user?: string | undefined;
  keyring?: string | undefined;
  secretRef?: LocalObjectReference | undefined;
  readOnly?: boolean | undefined;
}
export interface RangeAllocation {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  range: string;
  data: string;
}
export type RecursiveReadOnlyMode = string;
export interface ReplicationController {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: ReplicationControllerSpec;
  status?: ReplicationControllerStatus | undefined;
}
export interface ReplicationControllerCondition {
  type: ReplicationControllerConditionType;
  status: ConditionStatus;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export type ReplicationControllerConditionType = string;
export interface ReplicationControllerSpec {
  replicas?: number | undefined;
  minReadySeconds?: number | undefined;
  selector?: Record<string, string> | undefined;
  template?: PodTemplateSpec | undefined;
}
export interface ReplicationControllerStatus {
  replicas: number;
  fullyLabeledReplicas?: number | undefined;
  readyReplicas?: number | undefined;
  availableReplicas?: number | undefined;
  observedGeneration?: number | undefined;
  conditions?: ReplicationControllerCondition[] | undefined;
}
export interface ResourceClaim {
  name: string;
  request?: string | undefined;
}
export interface ResourceFieldSelector {
  containerName?: string | undefined;
  resource: string;
  divisor?: string | undefined;
}
export interface ResourceHealth {
  resourceID: ResourceID;
  health?: ResourceHealthStatus | undefined;
  message?: string | undefined;
}
export type ResourceHealthStatus = string;
export type ResourceID = string;
export type ResourceList = Record<string, string>;
export type ResourceName = string;
export interface ResourceQuota {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: ResourceQuotaSpec;
  status?: ResourceQuotaStatus | undefined;
}
export type ResourceQuotaScope = "BestEffort" | "CrossNamespacePodAffinity" | "NotBestEffort" | "NotTerminating" | "PriorityClass" | "Terminating" | "VolumeAttributesClass";
export interface ResourceQuotaSpec {
  hard?: ResourceList | undefined;
  scopes?: ResourceQuotaScope[] | undefined;
  scopeSelector?: ScopeSelector | undefined;
}
export interface ResourceQuotaStatus {
  hard?: ResourceList | undefined;
  used?: ResourceList | undefined;
}
export interface ResourceRequirements {
  limits?: ResourceList | undefined;
  requests?: ResourceList | undefined;
  claims?: ResourceClaim[] | undefined;
}
export type ResourceResizeRestartPolicy = string;
export interface ResourceStatus {
  name: ResourceName;
  resources?: ResourceHealth[] | undefined;
}
export type RestartPolicy = "Always" | "Never" | "OnFailure";
export interface SELinuxOptions {
  user?: string | undefined;
  role?: string | undefined;
  type?: string | undefined;
  level?: string | undefined;
}
export interface ScaleIOPersistentVolumeSource {
  gateway: string;
  system: string;
  secretRef?: SecretReference | undefined;
  sslEnabled?: boolean | undefined;
  protectionDomain?: string | undefined;
  storagePool?: string | undefined;
  storageMode?: string | undefined;
  volumeName?: string | undefined;
  fsType?: string | undefined;
  readOnly?: boolean | undefined;
}
export interface ScaleIOVolumeSource {
  gateway: string;
  system: string;
  secretRef?: LocalObjectReference | undefined;
  sslEnabled?: boolean | undefined;
  protectionDomain?: string | undefined;
  storagePool?: string | undefined;
  storageMode?: string | undefined;
  volumeName?: string | undefined;
  fsType?: string | undefined;
  readOnly?: boolean | undefined;
}
export interface ScopeSelector {
  matchExpressions?: ScopedResourceSelectorRequirement[] | undefined;
}
export type ScopeSelectorOperator = "DoesNotExist" | "Exists" | "In" | "NotIn";
export interface ScopedResourceSelectorRequirement {
  scopeName: ResourceQuotaScope;
  operator: ScopeSelectorOperator;
  values?: string[] | undefined;
}
export interface SeccompProfile {
  type: SeccompProfileType;
  localhostProfile?: string | undefined;
}
export type SeccompProfileType = "Localhost" | "RuntimeDefault" | "Unconfined";
export interface Secret {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  immutable?: boolean | undefined;
  data?: Record<string, string> | undefined;
  stringData?: Record<string, string> | undefined;
  type?: SecretType | undefined;
}
export interface SecretEnvSource extends LocalObjectReference {
  optional?: boolean | undefined;
}
export interface SecretKeySelector extends LocalObjectReference {
  key: string;
  optional?: boolean | undefined;
}
export interface SecretProjection extends LocalObjectReference {
  items?: KeyToPath[] | undefined;
  optional?: boolean | undefined;
}
export interface SecretReference {
  name?: string | undefined;
  namespace?: string | undefined;
}
export type SecretType = string;
export interface SecretVolumeSource {
  secretName?: string | undefined;
  items?: KeyToPath[] | undefined;
  defaultMode?: number | undefined;
  optional?: boolean | undefined;
}
export interface SecurityContext {
  capabilities?: Capabilities | undefined;
  privileged?: boolean | undefined;
  seLinuxOptions?: SELinuxOptions | undefined;
  windowsOptions?: WindowsSecurityContextOptions | undefined;
  runAsUser?: number | undefined;
  runAsGroup?: number | undefined;
  runAsNonRoot?: boolean | undefined;
  readOnlyRootFilesystem?: boolean | undefined;
  allowPrivilegeEscalation?: boolean | undefined;
  procMount?: ProcMountType | undefined;
  seccompProfile?: SeccompProfile | undefined;
  appArmorProfile?: AppArmorProfile | undefined;
}
export interface SerializedReference {
  apiVersion: string;
  kind: string;
  reference?: ObjectReference | undefined;
}
export interface Service {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: ServiceSpec;
  status?: ServiceStatus | undefined;
}
export interface ServiceAccount {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  secrets?: ObjectReference[] | undefined;
  imagePullSecrets?: LocalObjectReference[] | undefined;
  automountServiceAccountToken?: boolean | undefined;
}
export interface ServiceAccountTokenProjection {
  audience?: string | undefined;
  expirationSeconds?: number | undefined;
  path: string;
}
export type ServiceAffinity = "ClientIP" | "None";
export type ServiceExternalTrafficPolicy = "Cluster" | "Local";
export type ServiceInternalTrafficPolicy = "Cluster" | "Local";
export interface ServicePort {
  name?: string | undefined;
  protocol?: Protocol | undefined;
  appProtocol?: string | undefined;
  port: number;
  targetPort?: number | string | undefined;
  nodePort?: number | undefined;
}
export interface ServiceProxyOptions {
  apiVersion: string;
  kind: string;
  path?: string | undefined;
}
export interface ServiceSpec {
  ports?: ServicePort[] | undefined;
  selector?: Record<string, string> | undefined;
  clusterIP?: string | undefined;
  clusterIPs?: string[] | undefined;
  type?: ServiceType | undefined;
  externalIPs?: string[] | undefined;
  sessionAffinity?: ServiceAffinity | undefined;
  loadBalancerIP?: string | undefined;
  loadBalancerSourceRanges?: string[] | undefined;
  externalName?: string | undefined;
  externalTrafficPolicy?: ServiceExternalTrafficPolicy | undefined;
  healthCheckNodePort?: number | undefined;
  publishNotReadyAddresses?: boolean | undefined;
  sessionAffinityConfig?: SessionAffinityConfig | undefined;
  ipFamilies?: IPFamily[] | undefined;
  ipFamilyPolicy?: IPFamilyPolicy | undefined;
  allocateLoadBalancerNodePorts?: boolean | undefined;
  loadBalancerClass?: string | undefined;
  internalTrafficPolicy?: ServiceInternalTrafficPolicy | undefined;
  trafficDistribution?: string | undefined;
}
export interface ServiceStatus {
  loadBalancer?: LoadBalancerStatus | undefined;
  conditions?: Condition[] | undefined;
}
export type ServiceType = "ClusterIP" | "ExternalName" | "LoadBalancer" | "NodePort";
export interface SessionAffinityConfig {
  clientIP?: ClientIPConfig | undefined;
}
export type Signal = "SIGABRT" | "SIGALRM" | "SIGBUS" | "SIGCHLD" | "SIGCLD" | "SIGCONT" | "SIGFPE" | "SIGHUP" | "SIGILL" | "SIGINT" | "SIGIO" | "SIGIOT" | "SIGKILL" | "SIGPIPE" | "SIGPOLL" | "SIGPROF" | "SIGPWR" | "SIGQUIT" | "SIGRTMAX" | "SIGRTMAX-1" | "SIGRTMAX-10" | "SIGRTMAX-11" | "SIGRTMAX-12" | "SIGRTMAX-13" | "SIGRTMAX-14" | "SIGRTMAX-2" | "SIGRTMAX-3" | "SIGRTMAX-4" | "SIGRTMAX-5" | "SIGRTMAX-6" | "SIGRTMAX-7" | "SIGRTMAX-8" | "SIGRTMAX-9" | "SIGRTMIN" | "SIGRTMIN+1" | "SIGRTMIN+10" | "SIGRTMIN+11" | "SIGRTMIN+12" | "SIGRTMIN+13" | "SIGRTMIN+14" | "SIGRTMIN+15" | "SIGRTMIN+2" | "SIGRTMIN+3" | "SIGRTMIN+4" | "SIGRTMIN+5" | "SIGRTMIN+6" | "SIGRTMIN+7" | "SIGRTMIN+8" | "SIGRTMIN+9" | "SIGSEGV" | "SIGSTKFLT" | "SIGSTOP" | "SIGSYS" | "SIGTERM" | "SIGTRAP" | "SIGTSTP" | "SIGTTIN" | "SIGTTOU" | "SIGURG" | "SIGUSR1" | "SIGUSR2" | "SIGVTALRM" | "SIGWINCH" | "SIGXCPU" | "SIGXFSZ";
export interface SleepAction {
  seconds: number;
}
export type StorageMedium = string;
export interface StorageOSPersistentVolumeSource {
  volumeName?: string | undefined;
  volumeNamespace?: string | undefined;
  fsType?: string | undefined;
  readOnly?: boolean | undefined;
  secretRef?: ObjectReference | undefined;
}
export interface StorageOSVolumeSource {
  volumeName?: string | undefined;
  volumeNamespace?: string | undefined;
  fsType?: string | undefined;
  readOnly?: boolean | undefined;
  secretRef?: LocalObjectReference | undefined;
}
export type SupplementalGroupsPolicy = "Merge" | "Strict";
export interface Sysctl {
  name: string;
  value: string;
}
export interface TCPSocketAction {
  port: number | string;
  host?: string | undefined;
}
export interface Taint {
  key: string;
  value?: string | undefined;
  effect: TaintEffect;
  timeAdded?: string | undefined;
}
export type TaintEffect = "NoExecute" | "NoSchedule" | "PreferNoSchedule";
export type TerminationMessagePolicy = "FallbackToLogsOnError" | "File";
export interface Toleration {
  key?: string | undefined;
  operator?: TolerationOperator | undefined;
  value?: string | undefined;
  effect?: TaintEffect | undefined;
  tolerationSeconds?: number | undefined;
}
export type TolerationOperator = "Equal" | "Exists" | "Gt" | "Lt";
export interface TopologySelectorLabelRequirement {
  key: string;
  values: string[];
}
export interface TopologySelectorTerm {
  matchLabelExpressions?: TopologySelectorLabelRequirement[] | undefined;
}
export interface TopologySpreadConstraint {
  maxSkew: number;
  topologyKey: string;
  whenUnsatisfiable: UnsatisfiableConstraintAction;
  labelSelector?: LabelSelector | undefined;
  minDomains?: number | undefined;
  nodeAffinityPolicy?: NodeInclusionPolicy | undefined;
  nodeTaintsPolicy?: NodeInclusionPolicy | undefined;
  matchLabelKeys?: string[] | undefined;
}
export interface TypedLocalObjectReference {
  apiGroup?: string | undefined;
  kind: string;
  name: string;
}
export interface TypedObjectReference {
  apiGroup?: string | undefined;
  kind: string;
  name: string;
  namespace?: string | undefined;
}
export type URIScheme = "HTTP" | "HTTPS";
export type UniqueVolumeName = string;
export type UnsatisfiableConstraintAction = "DoNotSchedule" | "ScheduleAnyway";
export interface Volume extends VolumeSource {
  name: string;
}
export interface VolumeDevice {
  name: string;
  devicePath: string;
}
export interface VolumeMount {
  name: string;
  readOnly?: boolean | undefined;
  recursiveReadOnly?: RecursiveReadOnlyMode | undefined;
  mountPath: string;
  subPath?: string | undefined;
  mountPropagation?: MountPropagationMode | undefined;
  subPathExpr?: string | undefined;
}
export interface VolumeMountStatus {
  name: string;
  mountPath: string;
  readOnly?: boolean | undefined;
  recursiveReadOnly?: RecursiveReadOnlyMode | undefined;
  volumeStatus?: VolumeStatus | undefined;
}
export interface VolumeNodeAffinity {
  required?: NodeSelector | undefined;
}
export interface VolumeProjection {
  secret?: SecretProjection | undefined;
  downwardAPI?: DownwardAPIProjection | undefined;
  configMap?: ConfigMapProjection | undefined;
  serviceAccountToken?: ServiceAccountTokenProjection | undefined;
  clusterTrustBundle?: ClusterTrustBundleProjection | undefined;
  podCertificate?: PodCertificateProjection | undefined;
}
export interface VolumeResourceRequirements {
  limits?: ResourceList | undefined;
  requests?: ResourceList | undefined;
}
export interface VolumeSource {
  hostPath?: HostPathVolumeSource | undefined;
  emptyDir?: EmptyDirVolumeSource | undefined;
  gcePersistentDisk?: GCEPersistentDiskVolumeSource | undefined;
  awsElasticBlockStore?: AWSElasticBlockStoreVolumeSource | undefined;
  gitRepo?: GitRepoVolumeSource | undefined;
  secret?: SecretVolumeSource | undefined;
  nfs?: NFSVolumeSource | undefined;
  iscsi?: ISCSIVolumeSource | undefined;
  glusterfs?: GlusterfsVolumeSource | undefined;
  persistentVolumeClaim?: PersistentVolumeClaimVolumeSource | undefined;
  rbd?: RBDVolumeSource | undefined;
  flexVolume?: FlexVolumeSource | undefined;
  cinder?: CinderVolumeSource | undefined;
  cephfs?: CephFSVolumeSource | undefined;
  flocker?: FlockerVolumeSource | undefined;
  downwardAPI?: DownwardAPIVolumeSource | undefined;
  fc?: FCVolumeSource | undefined;
  azureFile?: AzureFileVolumeSource | undefined;
  configMap?: ConfigMapVolumeSource | undefined;
  vsphereVolume?: VsphereVirtualDiskVolumeSource | undefined;
  quobyte?: QuobyteVolumeSource | undefined;
  azureDisk?: AzureDiskVolumeSource | undefined;
  photonPersistentDisk?: PhotonPersistentDiskVolumeSource | undefined;
  projected?: ProjectedVolumeSource | undefined;
  portworxVolume?: PortworxVolumeSource | undefined;
  scaleIO?: ScaleIOVolumeSource | undefined;
  storageos?: StorageOSVolumeSource | undefined;
  csi?: CSIVolumeSource | undefined;
  ephemeral?: EphemeralVolumeSource | undefined;
  image?: ImageVolumeSource | undefined;
}
export interface VolumeStatus {
  image?: ImageVolumeStatus | undefined;
}
export interface VsphereVirtualDiskVolumeSource {
  volumePath: string;
  fsType?: string | undefined;
  storagePolicyName?: string | undefined;
  storagePolicyID?: string | undefined;
}
export interface WeightedPodAffinityTerm {
  weight: number;
  podAffinityTerm: PodAffinityTerm;
}
export interface WindowsSecurityContextOptions {
  gmsaCredentialSpecName?: string | undefined;
  gmsaCredentialSpec?: string | undefined;
  runAsUserName?: string | undefined;
  hostProcess?: boolean | undefined;
}
