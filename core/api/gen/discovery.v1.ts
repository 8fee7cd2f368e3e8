// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { ObjectReference, Protocol } from "./core.v1.ts";
export type AddressType = string;
export interface Endpoint {
  addresses: string[];
  conditions?: EndpointConditions | undefined;
  hostname?: string | undefined;
  targetRef?: ObjectReference | undefined;
  deprecatedTopology?: Record<string, string> | undefined;
  nodeName?: string | undefined;
  zone?: string | undefined;
  hints?: EndpointHints | undefined;
}
export interface EndpointConditions {
  ready?: boolean | undefined;
  serving?: boolean | undefined;
  terminating?: boolean | undefined;
}
export interface EndpointHints {
  forZones?: ForZone[] | undefined;
  forNodes?: ForNode[] | undefined;
}
export interface EndpointPort {
  name?: string | undefined;
  protocol?: Protocol | undefined;
  port?: number | undefined;
  appProtocol?: string | undefined;
}
export interface EndpointSlice {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  addressType: AddressType;
  endpoints?: Endpoint[] | undefined;
  ports?: EndpointPort[] | undefined;
}
export interface ForNode {
  name: string;
}
export interface ForZone {
  name: string;
}
