/**
 * A serving certificate somebody else renews (KubeletConfiguration tlsCertFile, tlsPrivateKeyFile): read again when its files change. What cannot be used is told once, and what was
 * before still holds; before there was any, the cluster's own, so that no file keeps a node from starting.
 *
 * Source: kubernetes v1.36 pkg/kubelet/certificate/kubelet.go (NewKubeletServerCertificateDynamicFileManager)
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { ServingFiles } from "../settings.ts";

const LOOK_EVERY_MS = 5_000;

/** PEM. */
interface KeyPair { readonly key: string; readonly cert: string }

export interface GivenCertificate extends Runnable {
  /** Undefined: none could be read yet. */
  current(): KeyPair | undefined;
}

/** `changed` is told that it is another now. */
export function givenCertificate({ certFile, keyFile }: ServingFiles, { changed, clock, log }: { readonly changed: () => void; readonly clock: Clock; readonly log: Log }): GivenCertificate {
  let pair: KeyPair | undefined;
  let told = "";

  /** True if it is another than before. */
  function load(): boolean {
    try {
      const [cert, key] = [readFileSync(certFile, "utf8"), readFileSync(keyFile, "utf8")];
      if (pair?.cert === cert && pair.key === key) return false;
      if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) throw new Error("private key does not match public key");
      pair = { key, cert };
      told = "";
      return true;
    } catch (error) {
      const { message } = error as Error;
      if (message !== told) log.error("the kubelet's serving certificate cannot be used; what was shown before is shown still", { certFile, keyFile, error });
      told = message;
      return false;
    }
  }

  load();
  return {
    name: "given serving certificate",
    current: () => pair,
    async run(signal, ready) {
      ready();
      for await (const _ of clock.every(LOOK_EVERY_MS, signal)) {
        if (!load()) continue;
        log.info("the kubelet's serving certificate was read again", { certFile });
        changed();
      }
    },
  };
}
