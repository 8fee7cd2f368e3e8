/**
 * Which versions and ciphers of TLS a server agrees to, by the names Go and hence Kubernetes give them: --tls-min-version, --tls-cipher-suites.
 *
 * Suites of TLS 1.3 are not to be chosen: naming them changes nothing, as upstream. Those that Go calls insecure are taken where the TLS library has them still.
 *
 * Source: kubernetes v1.36 component-base/cli/flag/ciphersuites_flag.go
 */
export interface TlsPolicy {
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  /** As OpenSSL names and joins them; absent: the library's own choice. */
  readonly ciphers?: string | undefined;
}

const VERSIONS: Readonly<Record<string, TlsPolicy["minVersion"]>> = { VersionTLS12: "TLSv1.2", VersionTLS13: "TLSv1.3" };
const OLD_VERSIONS: readonly string[] = ["VersionTLS10", "VersionTLS11"];
const TLS13: readonly string[] = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
const SUITES: Readonly<Record<string, string>> = {
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: "ECDHE-ECDSA-AES128-GCM-SHA256", TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: "ECDHE-RSA-AES128-GCM-SHA256",
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: "ECDHE-ECDSA-AES256-GCM-SHA384", TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: "ECDHE-RSA-AES256-GCM-SHA384",
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305: "ECDHE-ECDSA-CHACHA20-POLY1305", TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-ECDSA-CHACHA20-POLY1305",
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305: "ECDHE-RSA-CHACHA20-POLY1305", TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-RSA-CHACHA20-POLY1305",
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: "ECDHE-ECDSA-AES128-SHA", TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: "ECDHE-RSA-AES128-SHA", TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: "ECDHE-ECDSA-AES256-SHA", TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: "ECDHE-RSA-AES256-SHA",
  TLS_RSA_WITH_AES_128_GCM_SHA256: "AES128-GCM-SHA256", TLS_RSA_WITH_AES_256_GCM_SHA384: "AES256-GCM-SHA384", TLS_RSA_WITH_AES_128_CBC_SHA: "AES128-SHA", TLS_RSA_WITH_AES_256_CBC_SHA: "AES256-SHA",
};

/** Undefined: nothing is asked for. Throws an Error for the user. */
export function tlsPolicy({ minVersion = "", cipherSuites = [] }: { readonly minVersion?: string | undefined; readonly cipherSuites?: readonly string[] | undefined }): TlsPolicy | undefined {
  if (minVersion === "" && cipherSuites.length === 0) return undefined;
  if (OLD_VERSIONS.includes(minVersion)) throw new Error(`${minVersion} is not to be had: VersionTLS12 is the least`);
  const version = minVersion === "" ? "TLSv1.2" : VERSIONS[minVersion];
  if (version === undefined) throw new Error(`unknown tls version ${JSON.stringify(minVersion)}`);
  const unknown = cipherSuites.find((name) => !Object.hasOwn(SUITES, name) && !TLS13.includes(name));
  if (unknown !== undefined) throw new Error(`Cipher suite ${unknown} not supported or doesn't exist`);
  const ciphers = [...new Set(cipherSuites.flatMap((name) => SUITES[name] ?? []))];
  // none of TLS 1.2 is left: nobody but those who speak 1.3 can come in
  return cipherSuites.length > 0 && ciphers.length === 0 ? { minVersion: "TLSv1.3" } : { minVersion: version, ...(ciphers.length > 0 ? { ciphers: ciphers.join(":") } : {}) };
}
