// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { ResourceList } from "./core.v1.ts";
export interface ContainerMetrics {
  name: string;
  usage: ResourceList;
}
export interface NodeMetrics {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  timestamp: string;
  window: string;
  usage: ResourceList;
}
export interface PodMetrics {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  timestamp: string;
  window: string;
  containers: ContainerMetrics[];
}
