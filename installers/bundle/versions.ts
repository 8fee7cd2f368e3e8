/**
 * Everything that is built in but not written here: each pin with its version, checksum, source and why we need it.
 *
 * Debian packages come from the mirror the build machine's apt is configured with (debian.ts); apt checks the archive's signature, we check the
 * checksum. Suites: forky where the version matters (the container runtime, kubectl), trixie, Debian's stable, for the rest. When a mirror no
 * longer has a version, a build takes what it has now and says so, and a release refuses; look at the change, then write it here with its checksum for both architectures.
 *
 * npm packages beyond package.json: their integrity stands in package-lock.json (the Bun runtimes) or here.
 */
export type Architecture = "amd64" | "arm64";
export type Suite = "forky" | "trixie";

export interface Pin {
  readonly package: string;
  /** Debian's source package: where the source and the licence are. */
  readonly source: string;
  readonly suite: Suite;
  /** One version for all, or one each where an architecture was rebuilt alone (+bN). */
  readonly version: string | Readonly<Record<Architecture, string>>;
  readonly sha256: Readonly<Record<Architecture, string>>;
  /** Path in the package → path in the bundle. TRIPLET stands for the multiarch directory. */
  readonly files: Readonly<Record<string, string>>;
  readonly why: string;
}

/** Names of architectures and targets, per machine type. */
export const ARCHITECTURES = {
  amd64: { bun: "x64", npm: "x64", triplet: "x86_64-linux-gnu", loader: "ld-linux-x86-64.so.2", crossCompiler: "x86-64-linux-gnu" },
  arm64: { bun: "arm64", npm: "aarch64", triplet: "aarch64-linux-gnu", loader: "ld-linux-aarch64.so.1", crossCompiler: "aarch64-linux-gnu" },
} as const;

/** A library of the tools in lib/, run by the bundle's own loader (launch.c). */
function library(name: string, soname: string, source: string, version: string, amd64: string, arm64: string, why: string): Pin {
  return { package: name, source, suite: "trixie", version, sha256: { amd64, arm64 }, files: { [`usr/lib/TRIPLET/${soname}`]: `lib/${soname}` }, why };
}

export const RUNTIME_PINS: readonly Pin[] = [
  {
    package: "containerd", source: "containerd", suite: "forky", version: "2.1.9+ds1-5",
    sha256: { amd64: "2dda86ce7033fd612fc50e136679d8174ccad680eb29cd4611e0d2a1b84cf591", arm64: "43426c2af51f051e86374143d34031830ee5d0ff16bc23f35c6f498f27f8389d" },
    files: { "usr/bin/containerd": "bin/containerd", "usr/bin/containerd-shim-runc-v2": "bin/containerd-shim-runc-v2", "usr/bin/ctr": "bin/ctr" },
    why: "the container runtime. 2.1: user namespaces with idmapped volumes, image volumes, RuntimeConfig and the CRI event stream, which 1.6 and 1.7 lack in part",
  },
  {
    package: "runc", source: "runc", suite: "forky", version: "1.3.6+ds1-1",
    sha256: { amd64: "8e95d7bdfd22242ae4d48d58e3c277ba2b69dffc4ed8e573b837e6e93925d911", arm64: "ca500e0c580e6278f986e342659c7df7654a84e978ec45d1c91f3e7713cc0930" },
    files: { "usr/sbin/runc": "bin/runc" },
    why: "starts containers. 1.3: user namespaces with containerd 2.1; crun of Debian rejects containerd 2.1's OCI version or needs a newer glibc",
  },
  {
    package: "containernetworking-plugins", source: "golang-github-containernetworking-plugins", suite: "forky", version: "1.9.1+ds1-1",
    sha256: { amd64: "12857dd3136d61e00bffcc2c8823d14df586e94406098326e02846cfa46a058e", arm64: "f3da010c16eb52e1fe2cbb35ba3c724f2bd2c647b57ffe215d8fad4336d08a53" },
    files: { "usr/lib/cni/bridge": "cni/bridge", "usr/lib/cni/host-local": "cni/host-local", "usr/lib/cni/portmap": "cni/portmap" },
    why: "pod networking: interfaces, addresses, host ports, through nftables (ipMasqBackend and portmap's backend of 1.6 and later). loopback is containerd's own",
  },
];

/** Run by the bundle's own loader and C library, so nothing of the host is needed. */
export const TOOL_PINS: readonly Pin[] = [
  {
    package: "kubectl", source: "kubernetes", suite: "forky", version: "1.36.4+ds-1",
    sha256: { amd64: "407dad9ec755a64ef8c96dd2f5c0c093f9d334193c91cc0ce8424928cd5734d3", arm64: "5710b3f09f454702b7342852021612d0215bbcaa2520cb539ff0105b1e349e2c" },
    files: { "usr/bin/kubectl": "lib/kubectl" },
    why: "`coracle kubectl`, so that a machine needs nothing else to be looked after",
  },
  {
    package: "nftables", source: "nftables", suite: "trixie", version: "1.1.3-1",
    sha256: { amd64: "2ddfa61baaf3a76e2c499db9e521ba6affb226f85af0b6fef739f346ac5f0c39", arm64: "6cced5fccfbd80a25dfbd4bd17cc16372d08cb76c9d1159532ba0f668aa77c37" },
    files: { "usr/sbin/nft": "lib/nft" },
    why: "the service proxy, host ports and masquerading write their rules with it",
  },
  {
    package: "iproute2", source: "iproute2", suite: "trixie", version: "6.15.0-1",
    sha256: { amd64: "7b2dcade4a83ded723fcab21c5a53c47f29352c9c5e1661a089a1e481b3fb48a", arm64: "6750637e683afeef92690c7a136bace6c277066d644aa0da0adc08e2d6785af6" },
    files: { "usr/bin/ip": "lib/ip" },
    why: "interfaces and routes of the overlay, on hosts whose own `ip` is missing or busybox's, which knows no VXLAN",
  },
  library("libnftables1", "libnftables.so.1", "nftables", "1.1.3-1", "c7cbee3dce8452ae5c3c4269f6f52e96b896d36a46ea3c490e0e11e8ff359896", "260b0790a8f567ef27d293e15c722d867de113d579c330be17d13354cd61c356", "nft"),
  library("libnftnl11", "libnftnl.so.11", "libnftnl", "1.2.9-1", "1b3eae46bfb9c6ab44e404797fb45278045f926d73974a84097ad47a3e27d983", "070278465783af9f3c38a9465d3dec8ad51468a87b8c3a52f6451d4e95e08875", "nft"),
  library("libmnl0", "libmnl.so.0", "libmnl", "1.0.5-3", "4ec9c1096e0b954e3bdb03a62314ee7f49999045d3d55be3e4ded520ffc9baf5", "f21bb29056e9ede0031cc411ffa3b1272858fa4b950e1cd9e50756c5c2ece97f", "nft, ip"),
  library("libjansson4", "libjansson.so.4", "jansson", "2.14-2+b3", "60707a62fe6c1228c3389b12a13ca4efd76defc5532473e547a29e99cf7d2a6e", "7938472b1ddfa8b0c8f58d5f44406ae7a77a342dbb502a02f6bf292b4f853ab0", "nft"),
  library("libgmp10", "libgmp.so.10", "gmp", "2:6.3.0+dfsg-3", "d0d0265eb01770f17afd0f7c8c0622f80479dcfbbe13653a0debeec61464e622", "a27bbc27f119161ea9702c8dd66f54131cdf0d2ca73000f50ea91ef2fdfef0fb", "nft"),
  library("libxtables12", "libxtables.so.12", "iptables", "1.8.11-2", "4de5aa59faef5e98d6ba9f5f521a915be5641f224f597862f8d29e8319e8db16", "b200a559a4ae1b4ebcee4fb0fcaef6a16ef01abbe3da8887de15e800b1a6440d", "nft"),
  library("libedit2", "libedit.so.2", "libedit", "3.1-20250104-1", "b002ea172b9c1e34a67bc497c523c67bb74c3f0a4e98113cb083990a1f1d3bfe", "496c31df89fac9cb7e98102fcc21daf887376dcd9914f6322c86dd5bd4360ff1", "nft"),
  library("libbsd0", "libbsd.so.0", "libbsd", "0.12.2-2", "e5a85986fa6bec3307ab1bc860736b478b331882bc45e17675a7bdf88eecb43a", "6827c1b3ad8dcbf3478803f9150359433e3376a3bde01c4503888a22eb3924e3", "libedit"),
  library("libmd0", "libmd.so.0", "libmd", "1.1.0-2+b1", "7244ec3839b61fac0c1884fe08aaa040f26e8f1f35f1f5d3482eacefd30d1b44", "772e86842fd3fa1816a0cfee4833a73996aaa550461491543b886b9c8f999052", "libbsd"),
  library("libtinfo6", "libtinfo.so.6", "ncurses", "6.5+20250216-2", "8b9f6a7983e9418564e48a627518de4c03917b56efe68d7f3e93bd8fffa1cc10", "2a747f7fff3c2347c357387a7133df997410f07ba1b1df1a1461a97bd7fbc2fc", "libedit"),
  library("libbpf1", "libbpf.so.1", "libbpf", "1:1.5.0-3", "04c96ead3024888d80d08c8d08cc8cf4589f4614627acc69519f87ffb5adc1c2", "1ca7f600fb8e723a41d6b8220370a6e441f91a1ac513cd59cfeaf4eb2f5136ec", "ip"),
  library("libelf1t64", "libelf.so.1", "elfutils", "0.192-4", "94497b7e17b6f574a0605b380d454e20d3f01a9c63b70c2a2263f679d30053e1", "815b4265c7d6c89c5bbad456bdeed7af893da6912c9d16cf4c581001927c0e37", "libbpf"),
  library("libcap2", "libcap.so.2", "libcap2", "1:2.75-10+deb13u1+b3", "89fc4d34fc7a28ad6f0fcd0c561ab253b9dedf6f77f5a000b47c276c8295bf67", "863aa5b9cdf6f80010b48982d4639126b09a89eeef2c0c5c7be226297c811581", "ip"),
  library("libselinux1", "libselinux.so.1", "libselinux", "3.8.1-1", "68bb8d32bd8d6d7d2f5952a169db03d1484b46ae1e52abccdec42a19dccea5d5", "fc13da4c7783b8f4361d92ef1045931f298d1b0ac78ed1a85c2232615f49fc6f", "ip"),
  library("libpcre2-8-0", "libpcre2-8.so.0", "pcre2", "10.46-1~deb13u3", "e226f661d918f04daf38cdbc4806b7ed7d6ef95c7eb0ade692fc350e31970040", "1a02b7129990690ea095fd35d7ace6853742923d158019e1fb4ef27efd2c51a7", "libselinux"),
  library("zlib1g", "libz.so.1", "zlib", "1:1.3.dfsg+really1.3.1-1+deb13u1", "8c27c342230503b73dfde629642c3b352e87b554e06d60cf58772f236a305ceb", "0e41b3d7ad8ad7fcd36dd4d61ca91a70018478fc4af652e044f4be770784ddff", "libelf"),
  library("libzstd1", "libzstd.so.1", "libzstd", "1.5.7+dfsg-1", "2f6a2aeacfc925eba8b00ac9139bc4bfccf8cacb09eb93de067074b26948eef9", "924540bd59fdbfa77a0604360efdaca54411a43daf11c7e002a3c64791b67448", "libelf"),
  {
    package: "libc6", source: "glibc", suite: "trixie", version: "2.41-12+deb13u5",
    sha256: { amd64: "b59b0625cd1a791375d40dab23a4d5d3d0641e3d0a773501becdc3725b7f99cf", arm64: "0966fc3da1a26cc57647c68b5736f791b6e7eb498173a7993f63b6c89b4ed4f5" },
    files: { "usr/lib/TRIPLET/libc.so.6": "lib/libc.so.6", "usr/lib/TRIPLET/LOADER": "lib/ld.so" },
    why: "the loader and C library of the tools in lib/",
  },
];

/** Tools in lib/ that launch.c starts: each gets a copy of it in bin/. */
export const LAUNCHED: readonly string[] = ["kubectl", "nft", "ip"];

/** Images the node cannot do without, imported before any other. */
export const PAUSE_IMAGE = "coracle.local/pause:1";

/** npm packages used by the build alone, fetched by `npm pack`. */
export const NPM_PINS = {
  "node-api-headers": {
    version: "1.9.0", integrity: "sha512-2oNILP4jXwRB4ywnYKjVk1YyJ96n2D4EOVJO6S3oYZ5PtbJrw3Yt9TpAuX3nBLMuzn74rnfGQrv13pS9vC+YiA==",
    why: "node_api.h, to build the LevelDB addon without node's own headers installed",
  },
} as const;

export function versionOf(pin: Pin, architecture: Architecture): string {
  return typeof pin.version === "string" ? pin.version : pin.version[architecture];
}
