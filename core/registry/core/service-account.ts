/** ServiceAccount (v1): who a pod is to the API. Source: kubernetes v1.36 pkg/registry/core/serviceaccount/strategy.go */
import type { ServiceAccount } from "../../api/gen/core.v1.ts";
import { defineResource } from "../generic/resource.ts";

const ENFORCE_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets";

export const serviceAccounts = defineResource<ServiceAccount>({
  group: "", version: "v1", kind: "ServiceAccount", plural: "serviceaccounts",
  generation: false,
  prepareForCreate: keepNamesOnly,
  prepareForUpdate: keepNamesOnly,
  *warnings({ metadata }, old) {
    if (metadata.annotations?.[ENFORCE_MOUNTABLE] !== undefined && old?.metadata.annotations?.[ENFORCE_MOUNTABLE] === undefined)
      yield `metadata.annotations[${ENFORCE_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`;
  },
});

/** Secrets are of the account's own namespace: nothing but a name says which. */
function keepNamesOnly(account: ServiceAccount): void {
  if (account.secrets) account.secrets = account.secrets.map(({ name }) => (name ? { name } : {}));
}
