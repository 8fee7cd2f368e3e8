/**
 * The cluster's DNS server: one in every node's process, asked by the pods of that node.
 *
 *   pod ─▶ 10.43.0.10:53 ─▶ service proxy (kube-dns, internalTrafficPolicy Local) ─▶ this node's listener ─┬─▶ zone.ts: the cluster's names
 *                                                                                                          └─▶ forwarder.ts: all others, as the host
 *                                                                                                              asks, or as dns-settings.ts says
 *
 * Every EndpointSlice of kube-dns is made by dns-endpoints.ts. Only addresses in `clients` are answered: the port may be reachable from outside, and open
 * resolvers are abused. The cluster's names are answered from copies, without a network and without the API server.
 */
import type { Informers } from "../client/informer-factory.ts";
import { CONFIG_MAPS, ENDPOINT_SLICES, NAMESPACES, SERVICES } from "../client/resources.ts";
import { backoffMs } from "../lifecycle/backoff.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import { type Cidr, cidrContains, cidrOf, parseCidr, parseIp } from "../net/cidr.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { dnsCounts } from "./counts.ts";
import { DNS_SETTINGS, dnsSettings, NO_DNS_SETTINGS, serversFor } from "./dns-settings.ts";
import { type Asker, forwarder } from "./forwarder.ts";
import { type Address, listeners } from "./listeners.ts";
import { addressRecords, CLASS_IN, FormatError, nameBytes, type Query, RCODE, readQuery, type Reply, type ResourceRecord, TCP_BYTES_MAX, TYPE, UDP_BYTES_MAX, UDP_BYTES_MIN, writeError, writeReply } from "./wire.ts";
import { Zone, type ZoneAnswer } from "./zone.ts";

/** Not 53: hosts often have a resolver of their own. */
export const DNS_PORT = 10_053;

export interface DnsServerOptions {
  readonly informers: Informers;
  readonly clusterDomain: string;
  /** Pods and services: their reverse names are ours, and pods may ask. */
  readonly cidrs: readonly string[];
  /** Who else may ask: this node's addresses. Loopback always may. */
  readonly clients: () => readonly string[];
  /** May change: asked every other second, and whenever somebody says so. Addresses that are not there yet are tried again. */
  readonly listen: () => readonly Address[];
  /** Is given what to call when `listen` may say something else; returns what ends that. Absent: nobody knows. */
  readonly onListenChange?: ((look: () => void) => () => void) | undefined;
  readonly upstreams: () => readonly string[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}

const ALIASES_MAX = 8;
const LOOK_MS = 2000;
/** For what nobody tells: a port that another has, an address of a network that is not ours. */
const RETRY = { minMs: 100, maxMs: LOOK_MS };

export interface DnsServer extends Runnable {
  /** Looks at `listen` at once: an address of it has come. Resolved when it is served, or cannot be. */
  look(): Promise<void>;
}

export function dnsServer(options: DnsServerOptions): DnsServer {
  const { informers, clusterDomain, clock, random, log } = options;
  const sources = { services: informers.of(SERVICES), slices: informers.of(ENDPOINT_SLICES), namespaces: informers.of(NAMESPACES) };
  const configured = informers.of(CONFIG_MAPS, { namespace: DNS_SETTINGS.namespace, fieldSelector: `metadata.name=${DNS_SETTINGS.name}` });
  let settings = NO_DNS_SETTINGS;
  const cidrs = options.cidrs.flatMap((text): Cidr[] => { const cidr = parseCidr(text); return cidr ? [cidr] : []; });
  const zone = new Zone({ ...sources, domain: clusterDomain, cidrs });
  const synced = (): boolean => Object.values(sources).every((source) => source.synced);

  const counts = dnsCounts(options.metrics, () => upstream.entries());
  const refusals = options.metrics.counter("coracle_dns_refused_clients_total", "Datagrams and connections from addresses that may not ask.");
  const upstream = forwarder({
    upstreams: (name) => serversFor(settings, name) ?? options.upstreams(), clock, random, onCache: (kept) => counts.forwarded(kept),
    onAsked: (to, seconds, failure) => counts.asked(to, seconds, failure === "" ? "NOERROR" : "SERVFAIL"),
  });

  function mayAsk(address: string): boolean {
    const ip = parseIp(address.split("%")[0]!);
    if (!ip) return false;
    if (ip.family === 4 ? ip.value >> 24n === 127n : ip.value === 1n) return true;
    return cidrs.some((cidr) => cidrContains(cidr, ip)) || options.clients().some((text) => { const own = parseIp(text); return own !== undefined && cidrContains(cidrOf(own, own.family === 4 ? 32 : 128), ip); });
  }

  /** The answer's bytes, or undefined for what deserves none. */
  async function respond(message: Uint8Array, proto: "udp" | "tcp", asker: Asker): Promise<Uint8Array | undefined> {
    const startMs = clock.uptimeMs();
    let query: Query | undefined;
    try {
      query = readQuery(message);
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      return error.id === undefined ? undefined : writeError(error.id, RCODE.FORMERR);
    }
    if (!query) return undefined;
    const bytesMax = proto === "tcp" ? TCP_BYTES_MAX : Math.max(UDP_BYTES_MIN, Math.min(UDP_BYTES_MAX, query.edns?.udpBytes ?? UDP_BYTES_MIN));
    const answer = await answerTo(query, bytesMax, asker);
    const { question: { name, type }, edns } = query;
    counts.answered({
      proto, type, zone: zone.has(name) ? `${clusterDomain}.` : ".", requestBytes: message.length, dnssecOk: edns?.dnssecOk ?? false, rcode: answer[3]! & 0xf,
      responseBytes: answer.length, seconds: (clock.uptimeMs() - startMs) / 1000,
    });
    return answer;
  }

  async function answerTo(query: Query, bytesMax: number, asker: Asker): Promise<Uint8Array> {
    const { question, edns, opcode } = query;
    const refuse = (rcode: number): Uint8Array => writeReply(query, { rcode, authoritative: false, answers: [], authorities: [], additionals: [] }, bytesMax);
    if (opcode !== 0) return refuse(RCODE.NOTIMP);
    if (edns && edns.version !== 0) return refuse(RCODE.BADVERS);
    if (question.type === TYPE.AXFR || question.type === TYPE.IXFR || question.class !== CLASS_IN) return refuse(RCODE.REFUSED);
    const own = zone.answer(question.name, question.type);
    if (own && !synced()) return refuse(RCODE.SERVFAIL); // "no such name" would be a lie, and be remembered
    if (own) return writeReply(query, shuffled(await withAliases(own, query, asker)), bytesMax);
    return (await upstream.ask(query, bytesMax, asker)) ?? refuse(RCODE.SERVFAIL);
  }

  /** An ExternalName's target, looked up: many resolvers in containers do not follow an alias on their own. */
  async function withAliases(first: ZoneAnswer, query: Query, asker: Asker): Promise<Reply> {
    const answers = [...first.answers];
    let target = first.chase;
    for (let i = 0; target !== undefined && i < ALIASES_MAX && answers.every(({ name }) => name !== target); i++) { // one that leads back leads nowhere
      const next = zone.answer(target, query.question.type);
      if (next) {
        answers.push(...next.answers);
        target = next.chase;
        continue;
      }
      const asked: Query = { ...query, question: { ...query.question, name: target, nameBytes: nameBytes(target) } };
      const message = await upstream.ask(asked, TCP_BYTES_MAX, asker);
      const found = message && recordsOf(message);
      if (!found) return { ...first, rcode: RCODE.SERVFAIL };
      answers.push(...found);
      break;
    }
    return { ...first, answers };
  }

  /** Clients take the first address: each should find another one there. Aliases stay in front. */
  function shuffled(reply: Reply): Reply {
    const isAddress = ({ type }: ResourceRecord): boolean => type === "A" || type === "AAAA" || type === "SRV";
    const addresses = reply.answers.filter(isAddress);
    for (let i = addresses.length - 1; i > 0; i--) {
      const j = Math.floor(random.next() * (i + 1));
      [addresses[i], addresses[j]] = [addresses[j]!, addresses[i]!];
    }
    return { ...reply, answers: [...reply.answers.filter((record) => !isAddress(record)), ...addresses] };
  }

  let look = async (): Promise<void> => {}; // until it runs

  return {
    name: "dns",
    look: () => look(),
    async run(signal, ready) {
      const open = listeners({
        clock, log, signal,
        mayAsk: (address) => { const may = mayAsk(address); if (!may) refusals.inc(); return may; },
        respond: (message, proto, from) => respond(message, proto, { from, signal }),
      });
      let last = Promise.resolve(true); // one update after the other
      const update = (): Promise<boolean> => (last = last.then(() => signal.aborted || open.update(options.listen())));
      look = async () => void (await update());
      const unwatchListen = options.onListenChange?.(() => void look());
      const unwatch = configured.onChange(({ object, deleted }) => {
        settings = deleted ? NO_DNS_SETTINGS : dnsSettings(object);
        log.info("DNS settings", { upstreams: settings.upstreams, stubDomains: Object.fromEntries(settings.stubs) });
        for (const problem of settings.problems) log.warn("a DNS setting cannot be used", { problem });
      });
      ready(); // pods that ask too early ask again
      try {
        let failures = 0; // in a row
        while (!signal.aborted) {
          failures = (await update()) ? 0 : failures + 1;
          await clock.sleep(failures === 0 ? LOOK_MS : backoffMs(failures, RETRY), signal);
        }
      } finally {
        unwatch();
        unwatchListen?.();
        await last;
        await open.close();
      }
    },
  };
}

/** Undefined: somebody else's server has sent what cannot be read. */
function recordsOf(message: Uint8Array): ResourceRecord[] | undefined {
  try {
    return addressRecords(message);
  } catch (error) {
    if (error instanceof FormatError) return undefined;
    throw error;
  }
}
