/**
 * The ConfigMap kube-system/extension-apiserver-authentication: whom aggregated API servers are to believe.
 *
 *   authenticationData   what this server knows
 *   withOwn              what the ConfigMap holds, with what is missing of that: others may have added to it, as servers of another configuration do
 *
 * Unlike upstream's, a certificate authority that this server was given in place of another one takes its place: one that was taken away is not believed any longer.
 * Nothing goes for having expired by the clock, which may be wrong.
 *
 * Source: kubernetes v1.36 pkg/controlplane/controller/clusterauthenticationtrust
 */
import { type ProxyHeaders, STANDARD_PROXY_HEADERS } from "./request-header.ts";
import { readCertificatePems, toPem } from "../pki/pem.ts";

export interface Believed {
  /** PEM, as it is now: who signs client certificates, and who signs those of the aggregation layer. */
  readonly clientCa: () => string;
  readonly requestHeaderCa: () => string;
  /** Common names of front proxies. */
  readonly proxyNames?: readonly string[] | undefined;
  /** In which headers they say who a caller is. */
  readonly proxyHeaders?: ProxyHeaders | undefined;
}

type Data = Readonly<Record<string, string>>;

const BUNDLES = ["client-ca-file", "requestheader-client-ca-file"];

export function authenticationData({ clientCa, requestHeaderCa, proxyNames = ["system:auth-proxy"], proxyHeaders: { user, uid, group, extraPrefixes } = STANDARD_PROXY_HEADERS }: Believed): Data {
  return {
    "client-ca-file": clientCa(),
    "requestheader-client-ca-file": requestHeaderCa(),
    "requestheader-allowed-names": JSON.stringify(proxyNames),
    "requestheader-username-headers": JSON.stringify(user),
    ...(uid.length > 0 ? { "requestheader-uid-headers": JSON.stringify(uid) } : {}),
    "requestheader-group-headers": JSON.stringify(group),
    "requestheader-extra-headers-prefix": JSON.stringify(extraPrefixes),
  };
}

/** The keys of `found` that must be another for all of `own` to be in it. What cannot be read is replaced. */
export function withOwn(found: Data, own: Data): Data {
  return Object.fromEntries(Object.entries(own).flatMap(([key, wanted]) => {
    const now = found[key] ?? "";
    const whole = BUNDLES.includes(key) ? withBundle(now, wanted) : withList(now, wanted);
    return whole === now ? [] : [[key, whole]];
  }));
}

function withBundle(found: string, wanted: string): string {
  const [known, all] = [certificatesOf(found), certificatesOf(wanted)];
  if (all.length === 0) return wanted || found;
  if (known.length === 0) return wanted;
  return all.every((one) => known.includes(one)) ? found : [...new Set([...known, ...all])].join("");
}

/** Each written as we write it, so that those with one content are the same. */
function certificatesOf(bundle: string): readonly string[] { return readCertificatePems(bundle).map((der) => toPem("CERTIFICATE", der)); }

function withList(found: string, wanted: string): string {
  const known = listOf(found);
  const all = listOf(wanted) ?? [];
  if (!known) return wanted;
  return all.every((one) => known.includes(one)) ? found : JSON.stringify([...new Set([...known, ...all])]);
}

/** Undefined for what is no list of texts. */
function listOf(json: string): readonly string[] | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return Array.isArray(value) && value.every((one) => typeof one === "string") ? value : undefined;
  } catch {
    return undefined;
  }
}
