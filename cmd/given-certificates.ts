/**
 * Serving certificates somebody else renews: tls-cert-file with tls-private-key-file in the place of our own, tls-sni-cert-key beside it for those who ask for its names.
 *
 * Files are read again when they change; what cannot be used is logged, and what was before still holds. Nodes, pods and kubeconfigs know the cluster's CA alone: what everybody is
 * shown must lead to it, what is shown for a name need not. One that does not hold now, because nobody renewed it, while the machine was off or while it ran, or because the
 * clock is not set yet, is no reason to do without a server: the cluster's own is shown until it does.
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/options/serving.go, pkg/server/dynamiccertificates/{tlsconfig,named_certificates}.go, component-base/cli/flag/namedcertkey_flag.go
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext } from "node:tls";
import { aborted } from "../core/lifecycle/aborted.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";
import { readCertificatePems } from "../core/pki/pem.ts";
import { chainProblem, isOfTime } from "../core/pki/verify-chain.ts";
import { type Certificate, maySignHandshakes, parseCertificate } from "../core/pki/x509.ts";
import type { ApiServerArgs } from "./apiserver-args.ts";
import { ConfigError, requiredText } from "./config/config.ts";

const LOOK_EVERY_MS = 5_000;

/** PEM. */
export interface KeyPair { readonly key: string; readonly cert: string }

export interface GivenCertificates {
  /** Undefined: the cluster's own. */
  standard(): KeyPair | undefined;
  /** For who asks for this name, undefined being what everybody is shown; absent: nobody is shown anything else. */
  readonly named?: ((serverName: string) => KeyPair | undefined) | undefined;
  /** `changed` is told that the answers are others now. */
  part(changed: () => void): Runnable;
}

interface Source { readonly setting: string; readonly certFile: string; readonly keyFile: string; readonly patterns: readonly string[] | undefined }
interface Loaded extends KeyPair { readonly names: readonly string[]; readonly areGiven: boolean; readonly notAfterMs: number }
class NotNowError extends Error {}
interface Deps { readonly clusterCas: () => readonly Certificate[]; readonly clock: Clock; readonly log: Log }

/** Throws ConfigError. */
export function givenCertificates(args: ApiServerArgs, { clusterCas, clock, log }: Deps): GivenCertificates {
  const sources = [...standardSource(args), ...args.texts("tls-sni-cert-key").map(namedSource)];
  const loaded = new Map<Source, Loaded>();

  /** True if it is another than before. */
  function load(source: Source): boolean {
    const [cert, key] = [requiredText(source.certFile), requiredText(source.keyFile)];
    const before = loaded.get(source);
    const isStandard = source.patterns === undefined && source.setting === "tls-cert-file";
    if (before?.cert === cert && before.key === key && !(isStandard && clock.nowMs() > before.notAfterMs)) return false;
    const leaf = new X509Certificate(cert);
    if (!leaf.checkPrivateKey(createPrivateKey(key))) throw new Error("private key does not match public key");
    createSecureContext({ cert, key }); // what the library does not take is told now, rather than in the handshake
    const [first, ...more] = readCertificatePems(cert).map(parseCertificate);
    if (isStandard) {
      if (!maySignHandshakes(first!)) throw new Error("its key usage is without digital signature: nodes do not take it");
      const problem = chainProblem(first!, { roots: clusterCas(), intermediates: more, usage: "server auth", nowMs: clock.nowMs() });
      if (problem !== undefined && isOfTime(problem)) throw new NotNowError(problem);
      if (problem !== undefined) throw new Error(`nodes, pods and kubeconfigs trust the cluster's CA alone, and this is not of it (${problem}): show it to those who ask for its names, with tls-sni-cert-key=${source.certFile},${source.keyFile}`);
    }
    loaded.set(source, { cert, key, areGiven: source.patterns !== undefined, notAfterMs: first!.notAfterMs, names: (source.patterns ?? [first!.subject.commonName, ...first!.altNames.dnsNames]).map((name) => name.toLowerCase()).filter((name) => name !== "") });
    return true;
  }

  for (const source of sources) {
    try {
      load(source);
    } catch (cause) {
      if (cause instanceof NotNowError) continue; // told of, and tried again, below
      throw new ConfigError(`--kube-apiserver-arg ${source.setting} ${source.certFile}, ${source.keyFile}: ${(cause as Error).message}`, { cause });
    }
  }
  const addresses = sources.flatMap(({ patterns = [] }) => patterns.filter((name) => isIP(name) !== 0));
  if (addresses.length > 0) log.warn("tls-sni-cert-key for an address: who connects to one asks for no name, and is shown what everybody is shown", { addresses });
  const all = (standard: boolean): Loaded[] => sources.filter(({ setting }) => (setting === "tls-cert-file") === standard).flatMap((source) => loaded.get(source) ?? []);
  /** Names that were given count more than those a certificate has, and of each the first. */
  const shownFor = (name: string): Loaded | undefined => {
    const found = all(false).filter(({ names }) => names.includes(name));
    return found.find(({ areGiven }) => areGiven) ?? found[0];
  };
  return {
    standard: () => all(true)[0],
    named: all(false).length === 0 ? undefined : (serverName) => {
      const name = serverName.toLowerCase().replace(/\.$/, "");
      const wildcard = name.replace(/^[^.]*/, "*");
      return shownFor(name) ?? shownFor(wildcard);
    },
    part: (changed) => ({
      name: "given certificates",
      async run(signal, ready) {
        ready();
        const told = new Map<Source, string>(); // what is wrong is told once
        if (sources.length === 0) return await aborted(signal);
        for await (const _ of clock.every(LOOK_EVERY_MS, signal))
          for (const source of sources) {
            const { setting, certFile, keyFile } = source;
            try {
              const isOther = load(source);
              told.delete(source);
              if (!isOther) continue;
              log.info("a serving certificate was read again", { setting, certFile });
              changed();
            } catch (error) {
              const { message } = error as Error;
              const holdsNot = error instanceof NotNowError;
              if (told.get(source) !== message) log.error(holdsNot ? "a serving certificate does not hold now; the cluster's own is shown until there is one that does" : "a serving certificate cannot be used; what was shown before is shown still", { setting, certFile, keyFile, error });
              told.set(source, message);
              if (holdsNot && loaded.delete(source)) changed();
            }
          }
      },
    }),
  };
}

function standardSource(args: ApiServerArgs): Source[] {
  const [certFile = "", keyFile = ""] = [args.text("tls-cert-file"), args.text("tls-private-key-file")];
  if (certFile === "" && keyFile === "") return [];
  if (certFile === "" || keyFile === "") throw new ConfigError("--kube-apiserver-arg: tls-cert-file and tls-private-key-file go together");
  return [{ setting: "tls-cert-file", certFile, keyFile, patterns: undefined }];
}

/** "foo.crt,foo.key" or "foo.crt,foo.key:*.foo.com,foo.com" */
function namedSource(text: string): Source {
  const colon = text.indexOf(":");
  const [pair, names] = colon < 0 ? [text, undefined] : [text.slice(0, colon), text.slice(colon + 1).trim()];
  const files = pair.split(",").map((part) => part.trim());
  if (names === "") throw new ConfigError(`--kube-apiserver-arg tls-sni-cert-key ${text}: empty names list is not allowed`);
  if (files.length !== 2) throw new ConfigError(`--kube-apiserver-arg tls-sni-cert-key ${text}: expected comma separated certificate and key file paths`);
  return { setting: "tls-sni-cert-key", certFile: files[0]!, keyFile: files[1]!, patterns: names?.split(",").map((name) => name.trim()) };
}
