/**
 * Gives every Namespace its ServiceAccount "default".
 *
 * Source: kubernetes v1.36 pkg/controller/serviceaccount/serviceaccounts_controller.go
 */
import { isDeleting, namespaceOf, objectKey } from "../../api/meta/object-meta.ts";
import { isAlreadyExists, isNamespaceTerminating } from "../../api/meta/status-error.ts";
import { NAMESPACES, SERVICE_ACCOUNTS } from "../../client/resources.ts";
import { type Controller, itself, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";

const NAMES = ["default"];

export function serviceAccountController({ client, informers }: Pick<ControllerDeps, "client" | "informers">): Controller {
  const namespaces = informers.of(NAMESPACES);
  const accounts = informers.of(SERVICE_ACCOUNTS);
  const accountClient = client.resource(SERVICE_ACCOUNTS);
  return {
    name: "serviceaccount",
    workers: 1,
    watches: [itself(namespaces), mapped(accounts, ({ object, deleted }) => (deleted ? [objectKey("", namespaceOf(object))] : []))],
    async reconcile(key, { signal }) {
      const namespace = namespaces.get(key);
      if (namespace === undefined || isDeleting(namespace) || namespace.status?.phase === "Terminating") return;
      for (const name of NAMES) {
        if (accounts.get(objectKey(namespace.metadata.name, name)) !== undefined) continue;
        try {
          const metadata = { name, namespace: namespace.metadata.name };
          await accounts.caughtUp([await accountClient.create({ apiVersion: "v1", kind: "ServiceAccount", metadata }, { signal })], signal);
        } catch (error) {
          if (!isAlreadyExists(error) && !isNamespaceTerminating(error)) throw error;
        }
      }
    },
  };
}
