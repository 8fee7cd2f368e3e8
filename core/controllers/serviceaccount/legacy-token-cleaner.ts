/**
 * Takes away tokens in Secrets that were made for ServiceAccounts by themselves, as clusters before v1.24 did, and that nobody has used for a year:
 * first they are marked and no longer accepted (core/authn/service-account.ts), and deleted when nobody has missed them for another year.
 *
 * Only what a ServiceAccount names in its `secrets` was made by itself. What a pod mounts stays. Nothing is known of a token's use before the servers
 * began to note it, which the ConfigMap kube-system/kube-apiserver-legacy-service-account-token-tracking tells.
 *
 * Source: kubernetes v1.36 pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go
 */
import type { ConfigMap, Secret, ServiceAccount } from "../../api/gen/core.v1.ts";
import { isDeleting, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import { podSecretNames } from "../../api/meta/pod-references.ts";
import { isAnotherUid, isConflict, isNotFound } from "../../api/meta/status-error.ts";
import { parseTime } from "../../api/meta/time.ts";
import { CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS } from "../../client/resources.ts";
import type { Controller, Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";

const DAY_MS = 86_400_000;
const SYNC_MS = DAY_MS; // SyncInterval
/** --legacy-service-account-token-clean-up-period */
export const CLEAN_UP_MS = 365 * DAY_MS;
const LAST_USED = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since";
const TRACKING = { metadata: { namespace: "kube-system", name: "kube-apiserver-legacy-service-account-token-tracking" } };
const START = "legacy tokens" as ObjectKey;

export interface TokenFacts {
  readonly secret: Readonly<Secret>;
  /** The ServiceAccount it says it is of. */
  readonly account: Readonly<ServiceAccount> | undefined;
  readonly mounted: boolean;
}

export function legacyTokenCleanerController({ client, informers, clock, cleanUpMs = CLEAN_UP_MS }: Pick<ControllerDeps, "client" | "informers" | "clock"> & { readonly cleanUpMs?: number | undefined }): Controller {
  const [secrets, accounts, pods] = [informers.of(SECRETS), informers.of(SERVICE_ACCOUNTS), informers.of(PODS)];
  const secretClient = client.resource(SECRETS);
  return {
    name: "legacy-service-account-token-cleaner",
    workers: 1,
    watches: [],
    reads: [secrets, accounts, pods],
    starts: [START],
    async reconcile(_, { signal, log }): Promise<Next> {
      const nowMs = clock.nowMs();
      const tracking = await client.resource(CONFIG_MAPS).get(TRACKING, { signal });
      if (!trackedForLong(tracking, nowMs, cleanUpMs)) return { againInMs: SYNC_MS };
      for (const secret of secrets.list()) {
        const { namespace = "", name, uid, resourceVersion, annotations } = secret.metadata;
        if (!mayBeUnused(secret, nowMs, cleanUpMs)) continue;
        const account = accounts.get(objectKey(namespace, annotations?.["kubernetes.io/service-account.name"] ?? ""));
        const mounted = [...pods.list()].some((pod) => pod.metadata.namespace === namespace && podSecretNames(pod).has(name));
        const fate = fateOf({ secret, account, mounted }, nowMs, cleanUpMs);
        if (fate === "keep") continue;
        log.info(fate === "mark" ? "a ServiceAccount's token that nobody uses is no longer accepted" : "a ServiceAccount's token that nobody has missed is deleted", { secret: `${namespace}/${name}` });
        const write = fate === "mark"
          ? secretClient.patch(secret, "application/merge-patch+json", { metadata: { uid, labels: { [INVALID_SINCE]: dayOf(nowMs) } } }, { signal })
          : secretClient.delete(secret, { preconditions: { resourceVersion } }, { signal });
        await write.catch((error: unknown) => { // changed meanwhile, or refused: looked at again tomorrow
          if (signal.aborted) throw error;
          if (!isNotFound(error) && !isConflict(error) && !isAnotherUid(error)) log.warn("a ServiceAccount's token that nobody uses stays", { secret: `${namespace}/${name}`, error });
        });
      }
      return { againInMs: SYNC_MS };
    },
  };
}

/** Since the day after the one that stands there. Exported for its test. */
export function trackedForLong({ data }: Readonly<ConfigMap>, nowMs: number, cleanUpMs = CLEAN_UP_MS): boolean {
  const since = dayMs(data?.["since"]);
  return since !== undefined && nowMs >= since + DAY_MS + cleanUpMs;
}

function mayBeUnused({ type, metadata, metadata: { labels } }: Readonly<Secret>, nowMs: number, cleanUpMs: number): boolean {
  if (type !== "kubernetes.io/service-account-token" || isDeleting({ metadata })) return false;
  if ((parseTime(metadata.creationTimestamp) ?? nowMs) >= nowMs - cleanUpMs) return false;
  const lastUsed = labels?.[LAST_USED];
  return lastUsed === undefined || (dayMs(lastUsed) !== undefined && lastUsed < dayOf(nowMs - cleanUpMs));
}

/** What is to be done with a token's Secret. Exported for its test. */
export function fateOf({ secret, account, mounted }: TokenFacts, nowMs: number, cleanUpMs = CLEAN_UP_MS): "keep" | "mark" | "delete" {
  const { name, labels, annotations } = secret.metadata;
  if (!mayBeUnused(secret, nowMs, cleanUpMs) || mounted || account === undefined) return "keep";
  const uid = annotations?.["kubernetes.io/service-account.uid"] ?? "";
  if ((uid !== "" && uid !== account.metadata.uid) || !account.secrets?.some((one) => one.name === name)) return "keep";
  const invalidSince = labels?.[INVALID_SINCE];
  if (invalidSince === undefined || dayMs(invalidSince) === undefined) return "mark";
  return invalidSince < dayOf(nowMs - cleanUpMs) ? "delete" : "keep";
}

function dayOf(ms: number): string { return new Date(ms).toISOString().slice(0, 10); }

/** "2026-01-31" as its first moment. */
function dayMs(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(text) ? parseTime(`${text}T00:00:00Z`) : undefined;
}
