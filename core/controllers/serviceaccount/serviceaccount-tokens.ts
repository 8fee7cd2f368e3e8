/**
 * Secrets of type kubernetes.io/service-account-token: fills in the token of the ServiceAccount that the Secret names, and removes the Secret
 * with the account. An account does not go on naming a token that is gone. Pods do not use these (their tokens are bound and short-lived); they are for clients outside the cluster.
 *
 * Source: kubernetes v1.36 pkg/controller/serviceaccount/tokens_controller.go
 */
import type { Secret, ServiceAccount } from "../../api/gen/core.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { annotationsOf, isDeleting, keyOf, namespaceOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import { isConflict, isNotFound } from "../../api/meta/status-error.ts";
import { SECRETS, SERVICE_ACCOUNTS } from "../../client/resources.ts";
import type { Index } from "../../client/informer.ts";
import { type Controller, mapped, whenTold } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";

const TOKEN_SECRET_TYPE = "kubernetes.io/service-account-token";
const NAME_ANNOTATION = "kubernetes.io/service-account.name";
const UID_ANNOTATION = "kubernetes.io/service-account.uid";

/** Makes a token without expiry, as legacy tokens are. */
export type LegacyTokens = (account: Readonly<ServiceAccount>, secret: Readonly<Secret>) => string | Promise<string>;

interface Deps extends Pick<ControllerDeps, "client" | "informers"> {
  readonly tokenFor: LegacyTokens;
  /** PEM certificates of those who sign the API server's certificate. */
  readonly rootCa: () => string;
  /** Whenever those may be others. Returns what ends that. */
  readonly onRootCa?: ((handler: () => void) => () => void) | undefined;
}

const BY_ACCOUNT: Index<Secret> = {
  name: "service account",
  valuesOf: (secret) => (secret.type === TOKEN_SECRET_TYPE ? [accountKey(secret)] : []),
};

function accountKey(secret: Readonly<Secret>): ObjectKey { return objectKey(namespaceOf(secret), annotationsOf(secret)[NAME_ANNOTATION] ?? ""); }

export function serviceAccountTokensController({ client, informers, tokenFor, rootCa, onRootCa }: Deps): Controller {
  const secrets = informers.of(SECRETS);
  const accounts = informers.of(SERVICE_ACCOUNTS);
  const secretClient = client.resource(SECRETS);
  const accountClient = client.resource(SERVICE_ACCOUNTS);
  const gone = new Map<ObjectKey, Readonly<Secret>>(); // until their accounts do not name them any more
  return {
    name: "serviceaccount_tokens_service",
    workers: 5,
    watches: [mapped(secrets, ({ object, deleted }) => {
      if (!deleted) gone.delete(keyOf(object));
      else if (object.type === TOKEN_SECRET_TYPE) gone.set(keyOf(object), object);
      return [keyOf(object)];
    }), mapped(accounts, ({ object }) => secrets.by(BY_ACCOUNT, keyOf(object)).map(keyOf)), whenTold(onRootCa, () => [...secrets.list()].filter(({ type }) => type === TOKEN_SECRET_TYPE).map(keyOf))],
    async reconcile(key, { signal }) {
      const secret = secrets.get(key);
      const before = gone.get(key);
      if (secret === undefined && before !== undefined) {
        await unname(before, signal);
        gone.delete(key);
      }
      if (secret === undefined || secret.type !== TOKEN_SECRET_TYPE || isDeleting(secret)) return;
      const annotations = annotationsOf(secret);
      const name = annotations[NAME_ANNOTATION];
      if (name === undefined || name === "") return;
      const cached = accounts.get(accountKey(secret));
      const uid = annotations[UID_ANNOTATION];
      const isIts = (one: Readonly<ServiceAccount>): boolean => uid === undefined || uid === "" || uid === one.metadata.uid;
      // Before a Secret is deleted for want of its account, ask: our copy may be old, or of the account of before.
      const account = cached !== undefined && isIts(cached) ? cached : (await ifFound(accountClient.get({ metadata: { namespace: namespaceOf(secret), name } }, { signal })));
      if (account === undefined || !isIts(account)) {
        const preconditions = { uid: secret.metadata.uid, resourceVersion: secret.metadata.resourceVersion };
        await secretClient.delete(secret, { preconditions }, { signal }).catch((error: unknown) => { if (!isNotFound(error) && !isConflict(error)) throw error; });
        return;
      }
      const ca = base64(rootCa());
      const data = secret.data ?? {};
      const namespace = data["namespace"] || base64(namespaceOf(secret));
      if (data["ca.crt"] === ca && data["namespace"] === namespace && data["token"]) return; // one that somebody else has filled stays as it is
      const token = data["token"] || base64(await tokenFor(account, secret));
      const next: Secret = {
        ...secret, metadata: { ...secret.metadata, annotations: { ...annotations, [NAME_ANNOTATION]: account.metadata.name, [UID_ANNOTATION]: account.metadata.uid } },
        data: { ...data, "ca.crt": ca, namespace, token },
      };
      await secrets.caughtUp([await secretClient.update(next, { signal })], signal);
    },
  };

  async function unname(secret: Readonly<Secret>, signal: AbortSignal): Promise<void> {
    const account = accounts.get(accountKey(secret));
    const uid = annotationsOf(secret)[UID_ANNOTATION] || account?.metadata.uid;
    if (account === undefined || uid !== account.metadata.uid || !account.secrets?.some(({ name }) => name === secret.metadata.name)) return;
    const left = account.secrets.filter(({ name }) => name !== secret.metadata.name);
    await ifFound(accountClient.update({ ...account, secrets: left }, { signal }));
  }
}

function base64(text: string): string { return Buffer.from(text).toString("base64"); }
