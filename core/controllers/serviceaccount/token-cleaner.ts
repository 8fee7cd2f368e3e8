/**
 * Deletes bootstrap tokens whose time is over.
 *
 * Source: kubernetes v1.36 pkg/controller/bootstrap/tokencleaner.go
 */
import type { Secret } from "../../api/gen/core.v1.ts";
import { isConflict, isNotFound } from "../../api/meta/status-error.ts";
import { parseTime } from "../../api/meta/time.ts";
import { SECRETS } from "../../client/resources.ts";
import { type Controller, itself, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";

export function tokenCleanerController({ client, informers, clock }: Pick<ControllerDeps, "client" | "informers" | "clock">): Controller {
  const secrets = informers.of(SECRETS);
  const secretClient = client.resource(SECRETS);
  return {
    name: "token_cleaner",
    workers: 1,
    watches: [itself(secrets)],
    async reconcile(key, { signal, log }): Promise<Next> {
      const secret = secrets.get(key);
      if (secret === undefined || !isBootstrapToken(secret)) return;
      const endMs = tokenEndMs(secret);
      if (endMs === undefined) return;
      const leftMs = endMs - clock.nowMs();
      if (leftMs > 0) return { againInMs: leftMs };
      log.info("bootstrap token expired");
      const preconditions = { uid: secret.metadata.uid, resourceVersion: secret.metadata.resourceVersion };
      await secretClient.delete(secret, { preconditions }, { signal }).catch((error: unknown) => { if (!isNotFound(error) && !isConflict(error)) throw error; });
    },
  };
}

export function isBootstrapToken({ metadata, type }: Readonly<Secret>): boolean { return metadata.namespace === "kube-system" && type === "bootstrap.kubernetes.io/token"; }

export function tokenValue({ data }: Readonly<Secret>, name: string): string { return Buffer.from(data?.[name] ?? "", "base64").toString(); }

/** When a token ends; one whose date cannot be read has ended. */
export function tokenEndMs(secret: Readonly<Secret>): number | undefined {
  const text = tokenValue(secret, "expiration");
  return text === "" ? undefined : parseTime(text) ?? 0;
}
