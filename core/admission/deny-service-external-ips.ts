/** DenyServiceExternalIPs (off unless asked for): a Service gets no external IP it did not have. Source: kubernetes v1.36 plugin/pkg/admission/network/denyserviceexternalips */
import type { Service } from "../api/gen/core.v1.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { isResource, refusal } from "./refuse.ts";

export const denyServiceExternalIps: AdmissionPlugin = {
  name: "DenyServiceExternalIPs",
  handles: (request) => (request.operation === "CREATE" || request.operation === "UPDATE") && isResource(request, "services"),
  validate(request) {
    const wanted = (request.object as Service).spec?.externalIPs ?? [];
    const present = new Set((request.oldObject as Readonly<Service> | undefined)?.spec?.externalIPs);
    if (wanted.some((ip) => !present.has(ip))) throw refusal(request, "Use of external IPs is denied by admission control");
  },
};
