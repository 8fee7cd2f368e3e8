/**
 * Signs kube-public/cluster-info with each bootstrap token that is for signing, so that a machine that has the token alone can tell that the server in it is the right one:
 * under jws-kubeconfig-<id> a JWS (HS256) without its payload, which is the kubeconfig beside it.
 *
 * Source: kubernetes v1.36 pkg/controller/bootstrap/bootstrapsigner.go, staging/src/k8s.io/cluster-bootstrap/token/jws/jws.go
 */
import { createHmac } from "node:crypto";
import type { Secret } from "../../api/gen/core.v1.ts";
import { keyOf, objectKey } from "../../api/meta/object-meta.ts";
import { CLUSTER_INFO } from "../../client/cluster-objects.ts";
import { CONFIG_MAPS, SECRETS } from "../../client/resources.ts";
import { sameValue } from "../conditions.ts";
import { type Controller, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { isBootstrapToken, tokenEndMs, tokenValue } from "./token-cleaner.ts";

const SIGNATURE = "jws-kubeconfig-";
const NAME = "bootstrap-token-";

export function bootstrapSignerController({ client, informers, clock }: Pick<ControllerDeps, "client" | "informers" | "clock">): Controller {
  const secrets = informers.of(SECRETS);
  const maps = informers.of(CONFIG_MAPS);
  const info = objectKey(CLUSTER_INFO.metadata.namespace, CLUSTER_INFO.metadata.name);
  return {
    name: "bootstrap_signer_queue",
    workers: 1,
    watches: [mapped(maps, ({ object }) => (keyOf(object) === info ? [info] : [])), mapped(secrets, ({ object }) => (isBootstrapToken(object) ? [info] : []))],
    async reconcile(_key, { signal, log }): Promise<Next> {
      const map = maps.get(info);
      const kubeconfig = map?.data?.["kubeconfig"];
      if (map === undefined || kubeconfig === undefined) return;
      const nowMs = clock.nowMs();
      const tokens = [...secrets.inNamespace("kube-system")].filter((secret) => signs(secret, nowMs));
      const signatures = tokens.map((secret) => [SIGNATURE + tokenValue(secret, "token-id"), signatureOf(kubeconfig, secret)] as const);
      const data = Object.fromEntries([...Object.entries(map.data ?? {}).filter(([name]) => !name.startsWith(SIGNATURE)), ...signatures]);
      if (!sameValue(data, map.data ?? {})) {
        log.info("signing cluster-info", { signatures: signatures.length });
        await maps.caughtUp([await client.resource(CONFIG_MAPS).update({ ...map, data }, { signal })], signal);
      }
      const endsMs = tokens.map(tokenEndMs).filter((ms) => ms !== undefined);
      return endsMs.length === 0 ? undefined : { againInMs: Math.min(...endsMs) - nowMs };
    },
  };
}

function signs(secret: Readonly<Secret>, nowMs: number): boolean {
  const id = tokenValue(secret, "token-id");
  return isBootstrapToken(secret) && /^[a-z0-9]{6}$/.test(id) && secret.metadata.name === NAME + id && tokenValue(secret, "token-secret") !== "" && tokenValue(secret, "usage-bootstrap-signing") === "true" && (tokenEndMs(secret) ?? Number.POSITIVE_INFINITY) > nowMs;
}

function signatureOf(content: string, token: Readonly<Secret>): string { return detachedSignature(content, { id: tokenValue(token, "token-id"), secret: tokenValue(token, "token-secret") }); }

export function detachedSignature(content: string, { id, secret }: { readonly id: string; readonly secret: string }): string {
  const header = Buffer.from(JSON.stringify({ alg: "HS256", kid: id })).toString("base64url");
  return `${header}..${createHmac("sha256", secret).update(`${header}.${Buffer.from(content).toString("base64url")}`).digest("base64url")}`;
}
