/** AlwaysAdmit and AlwaysDeny: of no use but in tests, and known by name. Source: kubernetes v1.36 plugin/pkg/admission/{admit,deny} */
import type { AdmissionPlugin } from "./plugin.ts";
import { refusal } from "./refuse.ts";

export const alwaysAdmit: AdmissionPlugin = { name: "AlwaysAdmit", handles: () => false };

export const alwaysDeny: AdmissionPlugin = {
  name: "AlwaysDeny",
  handles: () => true,
  admit(request) { throw refusal(request, "admission control is denying all modifications"); },
  validate(request) { throw refusal(request, "admission control is denying all modifications"); },
};
