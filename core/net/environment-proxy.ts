/**
 * Which proxy a request goes through: what HTTPS_PROXY and NO_PROXY say, read as programs written in Go read them, which is what users of Kubernetes write them for.
 *
 *   const proxyOf = environmentProxy({ HTTPS_PROXY: "http://proxy.example.com:3128", NO_PROXY: "10.0.0.0/8,.svc,example.com:8443" });
 *   proxyOf(new URL("https://10.1.2.3:6443"))     undefined: straight
 *
 * NO_PROXY has names (and all below them), names with a dot or an asterisk before them (what is below them alone), addresses, ranges, each but ranges perhaps with a port, or `*`.
 * Nobody goes through a proxy to this machine itself.
 *
 * Source: golang.org/x/net/http/httpproxy
 */
import { addressBits, type Cidr, cidrContains, cidrOf, parseCidr, parseIp } from "./cidr.ts";
import { hostOf } from "./dial-tcp.ts";

/** Undefined: straight to it. Of https alone. */
export type ProxyOf = (url: URL) => URL | undefined;

type Environment = Readonly<Record<string, string | undefined>>;
type Matcher = (host: string, port: string) => boolean;

const THIS_MACHINE: readonly Matcher[] = [(host) => host === "localhost", within(parseCidr("127.0.0.0/8")!), within(parseCidr("::1/128")!)];

/** What is no proxy's address counts as not said. */
export function environmentProxy(env: Environment): ProxyOf {
  const proxy = proxyUrl(env["HTTPS_PROXY"] || env["https_proxy"] || "");
  if (!proxy) return () => undefined;
  const straight = [...THIS_MACHINE, ...(env["NO_PROXY"] || env["no_proxy"] || "").split(",").flatMap((entry) => matcherOf(entry.trim().toLowerCase()) ?? [])];
  return (url) => (url.protocol !== "https:" || straight.some((matches) => matches(hostOf(url), url.port || "443")) ? undefined : proxy);
}

function proxyUrl(text: string): URL | undefined {
  if (text === "") return undefined;
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  return URL.canParse(whole) ? new URL(whole) : undefined;
}

const WITH_PORT = /^(?:\[([^\]]*)\]|([^:]*)):([^:]*)$/;

function matcherOf(entry: string): Matcher | undefined {
  if (entry === "*") return () => true;
  const range = parseCidr(entry);
  if (range) return within(range);
  const [, bracketed, plain, port = ""] = WITH_PORT.exec(entry) ?? [undefined, undefined, entry];
  const name = bracketed ?? plain ?? "", address = parseIp(name);
  if (name === "") return undefined;
  const matches = address ? within(cidrOf(address, addressBits(address.family))) : named(name);
  return (host, asked) => matches(host, asked) && (port === "" || port === asked);
}

function within(range: Cidr): Matcher {
  return (host) => {
    const ip = parseIp(host);
    return ip !== undefined && cidrContains(range, ip);
  };
}

function named(name: string): Matcher {
  const below = name.replace(/^\*\./, ".");
  return (host) => parseIp(host) === undefined && (below.startsWith(".") ? host.endsWith(below) : host === below || host.endsWith(`.${below}`));
}
