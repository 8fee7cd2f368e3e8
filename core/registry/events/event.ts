/**
 * Event (events.k8s.io/v1): the core group's events under the names of their second API. They are stored, and checked, as those: ../core/event.ts. Only field selectors are its own.
 *
 * Source: kubernetes v1.36 pkg/apis/events/v1/conversion.go
 */
import type { Event as CoreEvent } from "../../api/gen/core.v1.ts";
import { events as coreEvents } from "../core/event.ts";
import { defineResource } from "../generic/resource.ts";

const FIELDS: Readonly<Record<string, string>> = {
  reason: "reason", type: "type", reportingController: "reportingComponent",
  ...Object.fromEntries(["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].map((name) => [`regarding.${name}`, `involvedObject.${name}`])),
};

/** Objects are in the stored version: the core group's. */
export const events = defineResource<CoreEvent>({
  ...coreEvents,
  group: "events.k8s.io", version: "v1",
  fields(event) {
    const stored = coreEvents.fields!(event);
    return Object.fromEntries(Object.entries(FIELDS).map(([own, core]) => [own, stored[core] ?? ""]));
  },
});
