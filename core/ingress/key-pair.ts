/** Whether a Secret of type kubernetes.io/tls has a certificate and its key, as a listener needs them. Pure. */
import { createPrivateKey, X509Certificate } from "node:crypto";

/** What is wrong with it, to be read after its name; undefined: nothing. */
export function keyPairProblem(data: Readonly<Record<string, unknown>> = {}): string | undefined {
  const pem = (name: string): Buffer => Buffer.from(String(data[name] ?? ""), "base64");
  const certificate = parsed(() => new X509Certificate(pem("tls.crt")));
  if (!certificate) return "has no certificate in tls.crt";
  const key = parsed(() => createPrivateKey(pem("tls.key")));
  if (!key) return "has no private key in tls.key";
  return certificate.checkPrivateKey(key) ? undefined : "has a private key that is not its certificate's";
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined; // anything may be in a Secret
  }
}
