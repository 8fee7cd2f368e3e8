// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { Protocol, TypedLocalObjectReference } from "./core.v1.ts";
import type { Condition, LabelSelector } from "./meta.v1.ts";
export interface HTTPIngressPath {
  path?: string | undefined;
  pathType?: PathType | undefined;
  backend: IngressBackend;
}
export interface HTTPIngressRuleValue {
  paths: HTTPIngressPath[];
}
export interface IPAddress {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: IPAddressSpec;
}
export interface IPAddressSpec {
  parentRef?: ParentReference | undefined;
}
export interface IPBlock {
  cidr: string;
  except?: string[] | undefined;
}
export interface Ingress {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: IngressSpec;
  status?: IngressStatus | undefined;
}
export interface IngressBackend {
  service?: IngressServiceBackend | undefined;
  resource?: TypedLocalObjectReference | undefined;
}
export interface IngressClass {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: IngressClassSpec;
}
export interface IngressClassParametersReference {
  apiGroup?: string | undefined;
  kind: string;
  name: string;
  scope?: string | undefined;
  namespace?: string | undefined;
}
export interface IngressClassSpec {
  controller?: string | undefined;
  parameters?: IngressClassParametersReference | undefined;
}
export interface IngressLoadBalancerIngress {
  ip?: string | undefined;
  hostname?: string | undefined;
  ports?: IngressPortStatus[] | undefined;
}
export interface IngressLoadBalancerStatus {
  ingress?: IngressLoadBalancerIngress[] | undefined;
}
export interface IngressPortStatus {
  port: number;
  protocol: Protocol;
  error?: string | undefined;
}
export interface IngressRule extends IngressRuleValue {
  host?: string | undefined;
}
export interface IngressRuleValue {
  http?: HTTPIngressRuleValue | undefined;
}
export interface IngressServiceBackend {
  name: string;
  port?: ServiceBackendPort | undefined;
}
export interface IngressSpec {
  ingressClassName?: string | undefined;
  defaultBackend?: IngressBackend | undefined;
  tls?: IngressTLS[] | undefined;
  rules?: IngressRule[] | undefined;
}
export interface IngressStatus {
  loadBalancer?: IngressLoadBalancerStatus | undefined;
}
export interface IngressTLS {
  hosts?: string[] | undefined;
  secretName?: string | undefined;
}
export interface NetworkPolicy {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: NetworkPolicySpec;
}
export interface NetworkPolicyEgressRule {
  ports?: NetworkPolicyPort[] | undefined;
  to?: NetworkPolicyPeer[] | undefined;
}
export interface NetworkPolicyIngressRule {
  ports?: NetworkPolicyPort[] | undefined;
  from?: NetworkPolicyPeer[] | undefined;
}
export interface NetworkPolicyPeer {
  podSelector?: LabelSelector | undefined;
  namespaceSelector?: LabelSelector | undefined;
  ipBlock?: IPBlock | undefined;
}
export interface NetworkPolicyPort {
  protocol?: Protocol | undefined;
  port?: number | string | undefined;
  endPort?: number | undefined;
}
export interface NetworkPolicySpec {
  podSelector?: LabelSelector | undefined;
  ingress?: NetworkPolicyIngressRule[] | undefined;
  egress?: NetworkPolicyEgressRule[] | undefined;
  policyTypes?: PolicyType[] | undefined;
}
export interface ParentReference {
  group?: string | undefined;
  resource?: string | undefined;
  namespace?: string | undefined;
  name?: string | undefined;
}
export type PathType = string;
export type PolicyType = "Egress" | "Ingress";
export interface ServiceBackendPort {
  name?: string | undefined;
  number?: number | undefined;
}
export interface ServiceCIDR {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: ServiceCIDRSpec;
  status?: ServiceCIDRStatus | undefined;
}
export interface ServiceCIDRSpec {
  cidrs?: string[] | undefined;
}
export interface ServiceCIDRStatus {
  conditions?: Condition[] | undefined;
}
