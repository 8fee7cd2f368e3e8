// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { EventSource, ObjectReference } from "./core.v1.ts";
export interface Event {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  eventTime: string;
  series?: EventSeries | undefined;
  reportingController?: string | undefined;
  reportingInstance?: string | undefined;
  action?: string | undefined;
  reason?: string | undefined;
  regarding?: ObjectReference | undefined;
  related?: ObjectReference | undefined;
  note?: string | undefined;
  type?: string | undefined;
  deprecatedSource?: EventSource | undefined;
  deprecatedFirstTimestamp?: string | undefined;
  deprecatedLastTimestamp?: string | undefined;
  deprecatedCount?: number | undefined;
}
export interface EventSeries {
  count: number;
  lastObservedTime: string;
}
