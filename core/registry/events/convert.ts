/** Events are one resource under two groups, with other names for some fields. Source: kubernetes v1.36 pkg/apis/events/v1/conversion.go */
import type { Event as CoreEvent } from "../../api/gen/core.v1.ts";
import type { Event } from "../../api/gen/events.v1.ts";

export function eventToCore(event: Readonly<Event>): CoreEvent {
  const { regarding, note, deprecatedSource, deprecatedFirstTimestamp, deprecatedLastTimestamp, deprecatedCount, reportingController, reportingInstance, ...rest } = event;
  return {
    ...rest, apiVersion: "v1", kind: "Event",
    involvedObject: regarding ?? {},
    ...(note !== undefined ? { message: note } : {}),
    ...(deprecatedSource ? { source: deprecatedSource } : {}),
    ...(deprecatedFirstTimestamp ? { firstTimestamp: deprecatedFirstTimestamp } : {}),
    ...(deprecatedLastTimestamp ? { lastTimestamp: deprecatedLastTimestamp } : {}),
    ...(deprecatedCount ? { count: deprecatedCount } : {}),
    reportingComponent: reportingController ?? "",
    reportingInstance: reportingInstance ?? "",
  };
}

/** What is not there is left to the canonical form, which writes times that are never left out as null. */
export function eventFromCore(event: Readonly<CoreEvent>): Partial<Event> & Pick<Event, "apiVersion" | "kind" | "metadata"> {
  const { involvedObject, message, source, firstTimestamp, lastTimestamp, count, reportingComponent, series, ...rest } = event;
  return {
    ...rest, apiVersion: "events.k8s.io/v1", kind: "Event",
    regarding: involvedObject ?? {},
    ...(series ? { series: series as Event["series"] } : {}),
    ...(message ? { note: message } : {}),
    ...(reportingComponent ? { reportingController: reportingComponent } : {}),
    ...(source ? { deprecatedSource: source } : {}),
    ...(firstTimestamp ? { deprecatedFirstTimestamp: firstTimestamp } : {}),
    ...(lastTimestamp ? { deprecatedLastTimestamp: lastTimestamp } : {}),
    ...(count ? { deprecatedCount: count } : {}),
  } as Partial<Event> & Pick<Event, "apiVersion" | "kind" | "metadata">;
}
