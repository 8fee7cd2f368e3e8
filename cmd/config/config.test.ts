import { expect, test } from "vitest";
import { helpOf, loadSettings } from "./config.ts";
import { checkRanges, isOfServicesFamily, nodePortCidrs, withOwnAddresses } from "./ranges.ts";

const nothing = { argv: [], env: {}, readFile: () => undefined };

test("defaults", () => {
  const settings = loadSettings("server", nothing);
  expect(settings).toMatchObject({ dataDir: "/var/lib/coracle", httpsListenPort: 6443, tlsSan: [], disableAgent: false, token: undefined });
});

test("in the file the same key is not there twice, however it is spelled", () => {
  const load = (text: string) => loadSettings("server", { ...nothing, readFile: () => text }).tlsSan;
  expect(load("tls-san:\n--tls-san: [b]\n")).toEqual(["b"]);
  for (const text of ["--tls-san: [a]\ntls-san: [b]\n", "tls-san+: [a]\n--tls-san+: [b]\n"]) expect(() => load(text)).toThrow('"tls-san" is there twice');
});

test("a text that is empty says nothing, wherever it is given", () => {
  const load = (argv: readonly string[], text = "", env = {}) => loadSettings("server", { argv, env, readFile: () => text }).dataDir;
  expect([load(["--data-dir", ""]), load(["--data-dir="], "data-dir: /x\n"), load([], "data-dir: ''\n"), load([], "", { CORACLE_DATA_DIR: "" })]).toEqual(["/var/lib/coracle", "/x", "/var/lib/coracle", "/var/lib/coracle"]);
});

test("flags beat variables, variables beat the file; a + key adds", () => {
  const settings = loadSettings("server", {
    argv: ["--node-name=flag", "--tls-san", "a", "--tls-san", "b,c", "--disable-agent", "--kubelet-arg", "x=1,2"],
    env: { CORACLE_NODE_NAME: "variable", CORACLE_HTTPS_LISTEN_PORT: "7443" },
    readFile: () => "node-name: file\nhttps-listen-port: 1\ntls-san+: [z]\ncluster-domain: edge.local\n",
  });
  expect(settings).toMatchObject({
    nodeName: "flag", httpsListenPort: 7443, clusterDomain: "edge.local", tlsSan: ["z", "a", "b", "c"], disableAgent: true, kubeletArg: ["x=1,2"],
  });
});

test("a key and the same with a + stand beside each other", () => {
  const sans = (...argv: string[]) => loadSettings("server", { ...nothing, argv, readFile: () => "tls-san: [a]\ntls-san+: [b]\n" }).tlsSan;
  expect([sans(), sans("--tls-san", "c")]).toEqual([["a", "b"], ["b", "c"]]);
});

test("values of the file are taken as they are written; a key without one says nothing", () => {
  const text = "token: 12345678901234567890123456e78901\nnode-name: 007\nnode-label: [a=1, b=0x10]\ndisable-agent: True\nhttps-listen-port: 7443\ntls-san:\nadvertise-address: null\nkubelet-arg: [max-pods=50, ]\n";
  expect(loadSettings("server", { ...nothing, readFile: () => text })).toMatchObject({
    token: "12345678901234567890123456e78901", nodeName: "007", nodeLabel: ["a=1", "b=0x10"], disableAgent: true, httpsListenPort: 7443, tlsSan: [], advertiseAddress: undefined, kubeletArg: ["max-pods=50"],
  });
  expect(loadSettings("server", { ...nothing, readFile: () => "# nothing yet\n" }).tlsSan).toEqual([]);
});

test("the installer's variables", () => {
  expect(loadSettings("agent", { ...nothing, env: { CORACLE_URL: "https://h:6443", CORACLE_TOKEN: "t" } })).toMatchObject({ server: "https://h:6443", token: "t" });
});

test.each([
  [{ argv: ["--nope"] }, 'unknown flag --nope for "coracle server"'],
  [{ argv: ["start"] }, '"coracle server" takes flags alone, and "start" is none'],
  [{ argv: ["--disable", "dns,traefik"] }, '--disable: "traefik" is no part of it; there are dns, proxy, network,'],
  [{ argv: ["--https-listen-port", "x"] }, '--https-listen-port must be a whole number, not "x"'],
  [{ argv: ["--overlay", "wireguard"] }, '--overlay must be vxlan, host-gw or none, not "wireguard"'],
  [{ argv: ["--kubelet-port", "99999"] }, "--kubelet-port must be between 1 and 65535, not 99999"],
  [{ argv: ["--token"] }, "--token needs a value"],
  [{ argv: ["--config", "/none"] }, "--config /none: no such file"],
  [{ readFile: () => "colour: red" }, '/etc/coracle/config.yaml: unknown key "colour"'],
  [{ readFile: () => "a: [" }, "/etc/coracle/config.yaml: "],
  [{ readFile: () => "kubelet-arg: {max-pods: 50}" }, '/etc/coracle/config.yaml: "kubelet-arg" must be a text, a number, true, false, or a list of such'],
])("%j is refused by name", (given, message) => {
  expect(() => loadSettings("server", { ...nothing, ...given })).toThrow(message);
});

test("of a file that cannot be read it is told where, and not what stands there", () => {
  const told = (text: string): string => { try { loadSettings("server", { ...nothing, readFile: () => text }); return ""; } catch (error) { return [error, (error as Error).cause].map(String).join(" "); } };
  for (const text of ["token: s3cr3t\n  bad: [\n", "token: \"s3cr3t\nfoo: [1\n"]) {
    expect(told(text)).toMatch(/config.yaml: .* at line \d, column \d/);
    expect(told(text)).not.toContain("s3cr3t");
  }
});

test.each([
  [["--service-cidr", "banana"], '--service-cidr: "banana" is no address range such as 10.42.0.0/16'],
  [["--cluster-cidr", "10.43.0.0/20"], "overlap"],
  [["--cluster-dns", "10.9.0.10"], "--cluster-dns 10.9.0.10 is not in --service-cidr 10.43.0.0/16"],
  [["--bind-address", "eth0"], '--bind-address: "eth0" is no IP address'],
  [["--service-node-port-range", "30000"], "--service-node-port-range must be like 30000-32767"],
])("ranges that cannot work are refused: %j", (argv, message) => {
  expect(() => checkRanges(loadSettings("server", { ...nothing, argv }))).toThrow(message);
});

test.each([[["--service-cidr", "10.96.0.0/29"]], [["--cluster-dns", "169.254.20.10"]]])("a DNS that is not ours may be outside of the Services' addresses: %j", (argv) => {
  expect(() => checkRanges(loadSettings("server", { ...nothing, argv }))).toThrow("is not in --service-cidr");
  expect(() => checkRanges(loadSettings("server", { ...nothing, argv: [...argv, "--disable", "dns"] }))).not.toThrow();
});

test("the DNS is the tenth address of the Services, unless one is chosen or there are not so many", () => {
  const dns = (...argv: string[]) => withOwnAddresses(loadSettings("server", { ...nothing, argv })).clusterDns;
  expect([dns(), dns("--service-cidr", "10.96.0.0/12"), dns("--service-cidr", "fd00:43::/112,10.43.0.0/16")]).toEqual(["10.43.0.10", "10.96.0.10", "fd00:43::a"]);
  expect([dns("--service-cidr", "10.96.0.0/12", "--cluster-dns", "10.96.0.53"), dns("--service-cidr", "10.96.0.0/29")]).toEqual(["10.96.0.53", "10.43.0.10"]);
});

test("to advertise all addresses is to advertise the node's", () => {
  const advertised = (address: string) => withOwnAddresses(loadSettings("server", { ...nothing, argv: ["--advertise-address", address] })).advertiseAddress;
  expect(["0.0.0.0", "::", "192.0.2.7"].map(advertised)).toEqual([undefined, undefined, "192.0.2.7"]);
});

test("addresses and ranges are taken however they are written, and what is none is left as it is", () => {
  const { clusterCidr, serviceCidr, clusterDns, advertiseAddress } = withOwnAddresses(loadSettings("server", {
    ...nothing, argv: ["--cluster-cidr", "10.42.7.1/16, FD00:42:0::/56", "--service-cidr", " FD00:43:0::5/112,banana", "--cluster-dns", "FD00:43::0:A", "--advertise-address", "FD00:0::1"],
  }));
  expect({ clusterCidr, serviceCidr, clusterDns, advertiseAddress }).toEqual({ clusterCidr: "10.42.0.0/16,fd00:42::/56", serviceCidr: "fd00:43::/112,banana", clusterDns: "fd00:43::a", advertiseAddress: "fd00::1" });
  expect(withOwnAddresses(loadSettings("server", nothing))).toEqual(loadSettings("server", nothing));
});

test("pods reach a server whose address is of their Services' first family", () => {
  const reached = (address: string, ...argv: string[]) => isOfServicesFamily(loadSettings("server", { ...nothing, argv }), address);
  expect([reached("192.0.2.1"), reached("2001:db8::1"), reached("2001:db8::1", "--service-cidr", "fd00:43::/112,10.43.0.0/16")]).toEqual([true, false, true]);
});

test("where NodePorts answer: everywhere, at ranges, at the node's own addresses", () => {
  const at = (...values: string[]) => nodePortCidrs(loadSettings("agent", { ...nothing, argv: values.flatMap((value) => ["--nodeport-addresses", value]) }), ["192.0.2.1", "2001:db8::1"]);
  expect([at(), at("10.0.0.0/8"), at("primary", "127.0.0.0/8")]).toEqual([undefined, ["10.0.0.0/8"], ["192.0.2.1/32", "2001:db8::1/128", "127.0.0.0/8"]]);
  expect(() => at("eth0")).toThrow('--nodeport-addresses: "eth0" is no address range such as 192.168.0.0/16, nor "primary"');
});

test("--help has each flag's words apart from its name", () => {
  for (const command of ["server", "agent", "simulate"] as const) {
    const rows = helpOf(command).split("\n").filter((line) => line.startsWith("  --"));
    expect(new Set(rows.map((row) => row.search(/(?<= {2})[^ -]/)))).toHaveProperty("size", 1);
  }
});
