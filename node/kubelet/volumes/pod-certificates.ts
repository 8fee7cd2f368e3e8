/**
 * Certificates of pods, for `podCertificate` sources of projected volumes: each source has a key of its own, and a signer is asked to certify it, anew when the certificate says so.
 *
 *   nothing ──▶ asked ──▶ held ◀──▶ held, and asked again
 *                 └─────────┴──▶ refused: denied or failed, for good
 *
 * Keys are nowhere but in memory and in the pod's volume: after a restart all are asked for again, as upstream does it. What drives this are the syncs of the pod, which ask for its files, and
 * what becomes of the requests.
 *
 * Source: kubernetes v1.36 pkg/kubelet/podcertificate/podcertificatemanager.go, pkg/kubelet/metrics/collectors/podcertificate_metrics.go
 */
import type { PodCertificateRequest, PodCertificateRequestStatus } from "../../../core/api/gen/certificates.v1beta1.ts";
import type { Node, Pod, PodCertificateProjection } from "../../../core/api/gen/core.v1.ts";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import { objectKey } from "../../../core/api/meta/object-meta.ts";
import { parseTime } from "../../../core/api/meta/time.ts";
import type { Client } from "../../../core/client/client.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import type { Informer } from "../../../core/client/informer.ts";
import { POD_CERTIFICATE_REQUESTS, SERVICE_ACCOUNTS } from "../../../core/client/resources.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Random } from "../../../core/lifecycle/random.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import { readPem, toPem } from "../../../core/pki/pem.ts";
import { podReference } from "../pod-spec.ts";
import { type PodKey, podKey } from "./pod-key.ts";

/** A request that is not seen this long after it was made was deleted. */
const ABANDON_MS = 10 * 60_000;
const OVERDUE_MS = 10 * 60_000;
/** That sources which began together do not stay together. */
const JITTER_MS = 5 * 60_000;

/** Both PEM. */
export interface PodCertificate { readonly key: string; readonly chain: string }

export interface PodCertificates {
  /** What there is now; asks for it, and in time for the next one. Throws an Error for the user while there is none. */
  certificate(pod: Pod, volume: string, index: number): PodCertificate;
  forget(podUid: string): void;
}

/** By the clock, and as long after it was seen as the signer's clock says: this machine's may be another. And by the server's: where that is set, as after a start in 1970, nothing holds that was signed before. */
interface Moment { readonly atMs: number; readonly atUptimeMs: number }

interface Held extends PodCertificate {
  readonly refresh: Moment;
  readonly expires: Moment;
  /** This clock is far ahead of the signer's: it does not count. */
  readonly isDueAtBirth: boolean;
}
interface Ask { readonly key: string; readonly name: string; readonly abandonUptimeMs: number }
interface Refusal { readonly outcome: "Denied" | "Failed"; readonly reason: string; readonly message: string }

interface Source {
  readonly pod: Pod;
  readonly projection: PodCertificateProjection;
  /** For the next request; kept while that cannot be made, since some kinds take long. */
  spare: PodKey | undefined;
  ask: Ask | undefined;
  held: Held | undefined;
  refused: Refusal | undefined;
  /** Of what is held now. */
  readonly told: Set<string>;
  /** Looked at now; and again, since something has changed meanwhile. */
  busy: boolean;
  again: boolean;
}

interface Deps {
  readonly client: Client;
  /** Of this node. */
  readonly requests: () => Informer<PodCertificateRequest>;
  readonly nodeName: string;
  readonly node: () => Pick<Node, "metadata">;
  readonly clock: Clock;
  /** The API server's clock; absent, or undefined: nobody has told. */
  readonly serverMs?: (() => number | undefined) | undefined;
  readonly random: Random;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "gaugeFrom">;
  readonly signal: AbortSignal;
  /** Its files are others, or will never be. */
  readonly onChange: (podUid: string) => void;
}

export function podCertificates({ client, requests, nodeName, node, clock, serverMs = () => undefined, random, events, log, metrics, signal, onChange }: Deps): PodCertificates {
  const sources = new Map<string, Map<string, Source>>(); // by pod uid, then by volume and place in it
  let followed: Informer<PodCertificateRequest> | undefined;

  metrics.gaugeFrom("kubelet_podcertificate_states", "[ALPHA] Gauge vector reporting the number of pod certificate projected volume sources, faceted by signer_name and state.", () => {
    const counts = new Map<string, number>();
    for (const source of [...sources.values()].flatMap((ofPod) => [...ofPod.values()])) {
      const id = JSON.stringify([source.projection.signerName ?? "", stateOf(source)]);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return [...counts].map(([id, count]) => {
      const [signer, state] = JSON.parse(id) as [string, string];
      return [{ signer_name: signer, state }, count] as const;
    });
  });

  /** From the first pod on that wants one: elsewhere nobody may serve such requests. */
  function follow(): Informer<PodCertificateRequest> {
    if (followed) return followed;
    followed = requests();
    const end = followed.onChange(({ object: { spec } }) => { for (const source of sources.get(spec.podUID)?.values() ?? []) void look(source); });
    signal.addEventListener("abort", end, { once: true });
    return followed;
  }

  function stateOf({ refused, held }: Source): string {
    if (refused) return refused.outcome.toLowerCase();
    if (!held) return "not_yet_issued";
    if (isPast(held, held.expires)) return "expired";
    return isPast(held, held.refresh, OVERDUE_MS) ? "overdue_for_refresh" : "fresh";
  }

  function isPast({ isDueAtBirth }: Held, { atMs, atUptimeMs }: Moment, afterMs = 0): boolean {
    return (!isDueAtBirth && clock.nowMs() >= atMs + afterMs) || clock.uptimeMs() >= atUptimeMs + afterMs || (serverMs() ?? 0) >= atMs + afterMs;
  }

  /** One at a time for each source. */
  async function look(source: Source): Promise<void> {
    source.again = true;
    if (source.busy) return;
    source.busy = true;
    try {
      while (source.again && !signal.aborted) {
        source.again = false;
        await step(source);
      }
    } catch (error) {
      if (!signal.aborted) log.warn("certificate of a pod not asked for, next try at its next sync", { pod: source.pod.metadata.name, namespace: source.pod.metadata.namespace, error });
    } finally {
      source.busy = false;
    }
  }

  async function step(source: Source): Promise<void> {
    const { refused, held, pod } = source;
    if (refused) return;
    if (source.ask) {
      const request = follow().get(objectKey(pod.metadata.namespace ?? "", source.ask.name));
      if (request) return settle(source, source.ask, request);
      if (!follow().synced || clock.uptimeMs() < source.ask.abandonUptimeMs) return;
      source.ask = undefined;
    }
    if (held && !isPast(held, held.refresh)) return;
    if (held) tellLateness(source, held);
    const ask = await request(source);
    source.ask = ask;
    source.again = true; // its outcome may have been seen meanwhile
  }

  /** What has become of the request; nothing, maybe. */
  function settle(source: Source, { key }: Ask, { metadata, status = {} }: Readonly<PodCertificateRequest>): void {
    const { pod, held } = source;
    const condition = status.conditions?.find(({ type }) => type === "Denied" || type === "Failed" || type === "Issued");
    if (!condition) {
      if (held) tellLateness(source, held);
      return;
    }
    source.ask = undefined;
    const { type, reason, message } = condition;
    if (type === "Issued") {
      source.held = heldOf(key, status);
      source.told.clear();
    } else {
      source.refused = { outcome: type as Refusal["outcome"], reason, message };
      const what = type === "Denied" ? "was denied" : "failed";
      events.event(podReference(pod), "Warning", type, `PodCertificateRequest ${metadata.namespace}/${metadata.name} ${what}, reason=${goQuote(reason)}, message=${goQuote(message)}`);
    }
    onChange(pod.metadata.uid);
  }

  function heldOf(key: string, { certificateChain = "", notBefore = "", beginRefreshAt = "", notAfter = "" }: PodCertificateRequestStatus): Held {
    const [nowMs, uptimeMs, jitterMs] = [clock.nowMs(), clock.uptimeMs(), random.next() * JITTER_MS];
    const fromMs = parseTime(notBefore) ?? nowMs; // minutes from when it was signed, says the API server
    const moment = (text: string, laterMs = 0): Moment => {
      const atMs = (parseTime(text) ?? nowMs) + laterMs;
      return { atMs, atUptimeMs: uptimeMs + atMs - fromMs };
    };
    const refresh = moment(beginRefreshAt, jitterMs);
    return { key, chain: cleanChain(certificateChain), refresh, expires: moment(notAfter), isDueAtBirth: nowMs >= refresh.atMs };
  }

  function tellLateness({ pod, told }: Source, held: Held): void {
    const tell = (is: boolean, reason: string, message: string): void => {
      if (!is || told.has(reason)) return;
      told.add(reason);
      events.event(podReference(pod), "Warning", reason, message);
    };
    tell(isPast(held, held.refresh, OVERDUE_MS), "CertificateOverdueForRefresh", "PodCertificate refresh overdue");
    tell(isPast(held, held.expires), "CertificateExpired", "PodCertificate expired");
  }

  async function request(source: Source): Promise<Ask> {
    const { pod: { metadata, spec }, projection } = source;
    const { name: podName, uid: podUID, namespace } = metadata, { serviceAccountName = "" } = spec;
    const account = await client.resource(SERVICE_ACCOUNTS).get({ metadata: { name: serviceAccountName, namespace } }, { signal });
    follow();
    const { pem, request: stubPKCS10Request } = (source.spare ??= await podKey(projection.keyType ?? ""));
    const made = await client.resource(POD_CERTIFICATE_REQUESTS).create({
      apiVersion: "certificates.k8s.io/v1beta1", kind: "PodCertificateRequest",
      metadata: { generateName: "req-", namespace, ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: podName, uid: podUID }] },
      spec: {
        signerName: projection.signerName ?? "", podName, podUID, serviceAccountName, serviceAccountUID: account.metadata.uid, nodeName, nodeUID: node().metadata.uid,
        maxExpirationSeconds: projection.maxExpirationSeconds, stubPKCS10Request, unverifiedUserAnnotations: projection.userAnnotations,
      },
    }, { signal });
    source.spare = undefined;
    return { key: pem, name: made.metadata.name, abandonUptimeMs: clock.uptimeMs() + ABANDON_MS + random.next() * JITTER_MS };
  }

  function sourceOf(pod: Pod, volume: string, index: number): Source {
    const { uid } = pod.metadata, key = `${volume}/${index}`;
    const ofPod = sources.get(uid) ?? new Map<string, Source>();
    sources.set(uid, ofPod);
    const known = ofPod.get(key);
    if (known) return known;
    const projection = pod.spec.volumes?.find(({ name }) => name === volume)?.projected?.sources?.[index]?.podCertificate;
    if (!projection) throw new Error("pod does not contain the named podCertificate projected volume source");
    const source: Source = { pod, projection, spare: undefined, ask: undefined, held: undefined, refused: undefined, told: new Set(), busy: false, again: false };
    ofPod.set(key, source);
    return source;
  }

  return {
    certificate(pod, volume, index) {
      const source = sourceOf(pod, volume, index);
      void look(source);
      const { refused, held } = source;
      if (refused) throw new Error(`PodCertificateRequest was permanently ${refused.outcome.toLowerCase()}: reason=${goQuote(refused.reason)} message=${goQuote(refused.message)}`);
      if (!held) throw new Error("credential bundle is not issued yet");
      return held;
    },
    forget: (podUid) => void sources.delete(podUid),
  };
}

/** The certificates alone, without what stands between them. */
function cleanChain(text: string): string { return readPem(text, { withHeaders: true }).map(({ der }) => toPem("CERTIFICATE", der)).join(""); }
