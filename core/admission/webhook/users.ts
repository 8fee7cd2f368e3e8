/**
 * As whom the server asks webhooks: users of a kubeconfig file, each named after the webhooks that it is shown to.
 *
 *   hooks.example.com:8443    *.example.com:8443    *.example.com    hook.ns.svc    *       the closest counts; port 443 need not be named
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/webhook/authentication.go, apiserver/pkg/admission/plugin/webhook/config
 */
import { isAbsolute } from "node:path";
import { fieldsOf } from "../../api/codec/strict-fields.ts";
import type { Credentials } from "../../client/http-transport.ts";

export interface WebhookUser extends Pick<Credentials, "cert" | "key" | "token"> {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

export interface WebhookUsers {
  readonly named: ReadonlyMap<string, WebhookUser>;
  /** Where none is named for a webhook. */
  readonly current?: WebhookUser | undefined;
}

/** Of a plug-in's part of an AdmissionConfiguration: the kubeconfig file it names. Throws for what is no such part. */
export function webhookKubeconfig(configuration: unknown): string | undefined {
  if (configuration === undefined) return undefined;
  const isOld = (configuration as { readonly kind?: unknown }).kind === "WebhookAdmission";
  const fields = fieldsOf(configuration, isOld ? { kind: "WebhookAdmission", apiVersions: ["apiserver.config.k8s.io/v1alpha1"] } : { kind: "WebhookAdmissionConfiguration", apiVersions: ["apiserver.config.k8s.io/v1"] });
  const path = fields.text("kubeConfigFile");
  fields.end();
  if (path !== "" && !isAbsolute(path)) throw new Error(`kubeConfigFile: Invalid value: ${JSON.stringify(path)}: must be an absolute file path`);
  return path || undefined;
}

/** `host`: with its port, host.example.com:443. Undefined: nobody in particular. */
export function userFor({ named, current }: WebhookUsers, host: string): WebhookUser | undefined {
  const withoutPort = host.endsWith(":443") ? [host.slice(0, -":443".length).replace(/^\[|\]$/g, "")] : [];
  for (const name of [host, ...withoutPort].flatMap((target) => [target, ...domainsOf(target)])) {
    const found = named.get(name);
    if (found) return found;
  }
  return named.get("*") ?? current;
}

/** a.b.c: *.b.c, *.c */
function domainsOf(target: string): string[] {
  const steps = target.split(".");
  return steps.slice(1).map((_, i) => `*.${steps.slice(i + 1).join(".")}`);
}

/** What its requests say of who asks; undefined: nothing. */
export function authorizationOf({ token, username, password }: WebhookUser): string | undefined {
  if (token) return `Bearer ${token}`;
  return username || password ? `Basic ${Buffer.from(`${username ?? ""}:${password ?? ""}`).toString("base64")}` : undefined;
}
