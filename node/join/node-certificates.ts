/**
 * Keeps the certificates of a node good: asks for the kubelet's serving certificate once its Node has addresses, and for successors of both when a good
 * part of their life is over, when the node's addresses change, or when another authority signs in the cluster now: that of before may soon be trusted no more.
 *
 * Source: kubernetes v1.36 client-go/util/certificate/certificate_manager.go (70 to 90 % of a certificate's life)
 */
import { StatusError } from "../../core/api/meta/status-error.ts";
import type { Client } from "../../core/client/client.ts";
import { CLIENT_CA_KEY, NODE_LEASES, SERVER_CA_KEY } from "../../core/client/cluster-objects.ts";
import { LEASES } from "../../core/client/resources.ts";
import { backoffMs } from "../../core/lifecycle/backoff.ts";
import { type Clock, sleepBy } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import { type AltNames, altNamesOf, coversAltNames } from "../../core/pki/alt-names.ts";
import { kubeletSubject } from "../../core/pki/identities.ts";
import type { Leaf } from "../../core/pki/leaf.ts";
import { certificateHash } from "../../core/pki/join-token.ts";
import { readCertificatePems } from "../../core/pki/pem.ts";
import { issued } from "../../core/pki/verify-chain.ts";
import { allowsUsage, parseCertificate } from "../../core/pki/x509.ts";
import type { NodeIdentity } from "./identity.ts";
import { JoinError } from "./join-error.ts";
import { clientCertificate } from "./join.ts";
import { KUBELET_SERVING_SIGNER, requestCertificate, type WantedCertificate } from "./request-certificate.ts";

export interface NodeCertificatesOptions {
  readonly identity: NodeIdentity;
  /** In the node's own name. */
  readonly client: Client;
  /** In the name of a joining machine, while there is a token: for a node whose certificate expired and that the server does not let come back. */
  readonly bootstrap: Client | undefined;
  readonly nodeIps: () => readonly string[];
  readonly onServing: () => void;
  /** Is told of each that could not be had. */
  readonly failed?: ((whose: "client" | "serving") => void) | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

const CHECK_MS = 60_000;
/** Until the next look, where a server has not answered. Source: client-go certificate_manager.go (rotateCerts) */
const HASTY = { minMs: 2_000, maxMs: 32_000 };
const HASTY_TRIES = 4;
const LIFE_FRACTION = { min: 0.7, spread: 0.2 };
/** A certificate that was due when it was issued shows that it is our clock that is wrong, or that servers do not agree on who signs: others would be no better, and each is an object of the cluster's and a write to flash. */
const AGAIN_MS = 12 * 3_600_000;
/** Between requests for a certificate that the server would take. */
const DOUBT = { minMs: 60_000, maxMs: AGAIN_MS };
/** A request nobody has answered for this long is made anew: the node's addresses may be others by now. */
const ANSWER_MS_MAX = 15 * 60_000;
/** Of one for its addresses so long is waited for: a server approves none for what are its own, too, on another network, as those that a modem gives to every machine. By its name it finds the node. */
const ADDRESSES_MS = 30_000;

export function nodeCertificates({ identity, client, bootstrap, nodeIps, onServing, failed, clock, random, log }: NodeCertificatesOptions): Runnable {
  const fraction = LIFE_FRACTION.min + LIFE_FRACTION.spread * random.next();
  let toldExpired = "";

  let dueAtBirth = new WeakMap<Leaf, number>(); // when they were issued, by uptime
  let doubts = 0, doubtAgainMs = 0; // by uptime
  let servingDoubted = false;

  function isDue(leaf: Leaf): boolean {
    const bornMs = dueAtBirth.get(leaf);
    return (isOutOfTime(leaf) || isOfOlderAuthority(leaf)) && (bornMs === undefined || clock.uptimeMs() - bornMs >= AGAIN_MS);
  }

  /** By this machine's clock it should have a successor. */
  function isOutOfTime(leaf: Leaf): boolean {
    const { notBeforeMs, notAfterMs } = leaf.certificate;
    return clock.nowMs() > notBeforeMs + (notAfterMs - notBeforeMs) * fraction || isEarly(leaf);
  }

  /** Another signs now, as the cluster says: the first of those that are trusted. */
  function isOfOlderAuthority({ certificate }: Leaf): boolean {
    const [first] = readCertificatePems(identity.cluster?.settings[allowsUsage(certificate, "server auth") ? SERVER_CA_KEY : CLIENT_CA_KEY] ?? "");
    return first !== undefined && !issued(parseCertificate(first), certificate);
  }

  /** It was issued while clocks were ahead. */
  function isEarly({ certificate: { notBeforeMs } }: Leaf): boolean { return clock.nowMs() < notBeforeMs; }

  async function asked(asker: Client, wanted: WantedCertificate, signal: AbortSignal): Promise<Leaf> {
    const leaf = await requestCertificate({ client: asker, clock, log }, wanted, signal);
    if (isOutOfTime(leaf) || isOfOlderAuthority(leaf)) dueAtBirth.set(leaf, clock.uptimeMs());
    return leaf;
  }

  /**
   * The server does not let this node read its own lease, as nodes may: by its clock, which is far from ours, the certificate does not hold. It gives another one, and takes that when the clock is set,
   * too, if it is asked again then.
   */
  async function isDoubted(signal: AbortSignal): Promise<boolean> {
    try {
      await client.resource(LEASES).get({ metadata: { name: identity.nodeName, namespace: NODE_LEASES } }, { signal }); // the smallest there is, each minute
      doubts = 0;
      return false;
    } catch (error) {
      if (!(error instanceof StatusError) || error.code !== 403 || clock.uptimeMs() < doubtAgainMs) return false; // 401 is somebody's who is not let in at all
      doubtAgainMs = clock.uptimeMs() + backoffMs(++doubts, DOUBT);
      return true;
    }
  }

  async function keepClient(signal: AbortSignal): Promise<void> {
    const leaf = identity.client;
    const doubted = leaf !== undefined && !isDue(leaf) && (await isDoubted(signal));
    if (leaf && !isDue(leaf) && !doubted) return;
    if (doubted) {
      log.warn("the server does not take this node's certificate, whose time it is by the clock here: one of the clocks is wrong", { until: new Date(leaf.certificate.notAfterMs).toISOString() });
      dueAtBirth = new WeakMap(); // what that clock has issued is looked at anew
      servingDoubted = true; // it is as old
    }
    const holds = leaf !== undefined && !doubted && clock.nowMs() <= leaf.certificate.notAfterMs && !isEarly(leaf);
    const ask = async (asker: Client): Promise<void> => await identity.setClient(await asked(asker, clientCertificate(identity), signal));
    if (holds) await ask(client);
    else {
      try {
        await ask(client); // a server lets a node that it knows come back
      } catch (error) {
        if (!isRefused(error)) throw error;
        if (bootstrap) await ask(bootstrap);
        else return tellExpired(error);
      }
    }
    log.info("the node's client certificate is renewed", { until: new Date(identity.client!.certificate.notAfterMs).toISOString() });
  }

  /** Once for each certificate. */
  function tellExpired(error: unknown): void {
    const hash = identity.client ? certificateHash(identity.client.certificate.raw) : "none";
    if (toldExpired !== hash) log.error("this node's certificate has expired: start the agent with --token to join again", { node: identity.nodeName, error });
    toldExpired = hash;
  }

  async function keepServing(signal: AbortSignal): Promise<void> {
    const altNames = altNamesOf([identity.nodeName, ...nodeIps()]);
    const leaf = identity.serving;
    if (leaf && !servingDoubted && !isDue(leaf) && coversAltNames(leaf.certificate.altNames, altNames) && isOfCa(leaf)) return;
    const isOver = (one: Leaf): boolean => (one.certificate.altNames.ipAddresses.length === 0 ? isDue(one) : clock.nowMs() > one.certificate.notAfterMs || isEarly(one)); // one for the name alone has a successor in time
    const holds = leaf !== undefined && !servingDoubted && isOfCa(leaf) && !isOver(leaf);
    const stop = new AbortController(), meanwhile = holds ? undefined : serveByName(AbortSignal.any([signal, stop.signal]));
    try {
      await serve(altNames, signal);
    } finally {
      stop.abort();
      await meanwhile;
    }
  }

  async function serve(altNames: AltNames, signal: AbortSignal): Promise<void> {
    const leaf = await asked(client, { signerName: KUBELET_SERVING_SIGNER, subject: kubeletSubject(identity.nodeName), altNames, usages: ["digital signature", "server auth"] }, signal);
    signal.throwIfAborted();
    await identity.setServing(leaf);
    servingDoubted = false;
    log.info("the kubelet has a serving certificate", { until: new Date(leaf.certificate.notAfterMs).toISOString(), addresses: altNames.ipAddresses });
    onServing();
  }

  /** While nobody approves its addresses. */
  async function serveByName(signal: AbortSignal): Promise<void> {
    await sleepBy(clock, ADDRESSES_MS, signal);
    if (!signal.aborted) await serve(altNamesOf([identity.nodeName]), signal).catch((error: unknown) => log.debug("no certificate for the node's name alone", { error }));
  }

  function isOfCa({ certificate }: Leaf): boolean {
    return readCertificatePems(identity.ca ?? "").map(parseCertificate).some((one) => issued(one, certificate));
  }

  /** By who answers: another try would be refused as well. */
  function isRefused(error: unknown): boolean {
    return error instanceof JoinError || (error instanceof StatusError && (error.code === 401 || error.code === 403));
  }

  /** False: some server may be there in a moment. */
  async function keepBoth(signal: AbortSignal): Promise<boolean> {
    let isOver = true;
    for (const [whose, keep] of [["client", keepClient], ["serving", keepServing]] as const) {
      const late = new AbortController();
      const alarm = clock.after(ANSWER_MS_MAX, () => late.abort(new Error("nobody has answered the certificate request")));
      try {
        await keep(AbortSignal.any([signal, late.signal]));
      } catch (error) {
        if (signal.aborted) return true;
        failed?.(whose);
        log.warn("no new certificate yet, next try soon", { error });
        if (!isRefused(error) && !late.signal.aborted) isOver = false;
      } finally {
        alarm.cancel();
      }
    }
    return isOver;
  }

  return {
    name: "node certificates",
    async run(signal, ready) {
      ready();
      for await (const _ of clock.every(CHECK_MS, signal))
        for (let failures = 1; !(await keepBoth(signal)) && !signal.aborted && failures <= HASTY_TRIES; failures++) await clock.sleep(backoffMs(failures, HASTY), signal);
    },
  };
}
