import { expect, test } from "vitest";
import { renderContainerdConfig } from "./containerd-config.ts";
import { canLowerOomScore } from "./host-facts.ts";
import { runtimePaths } from "./paths.ts";

const settings = { pauseImage: "coracle.local/pause:1", snapshotter: "overlayfs", canLowerOomScore: true, hasApparmor: true, logLevel: "info", cniBinDirs: ["/a/cni", "/opt/cni/bin"], cniConfDir: "/a/net.d" } as const;
const parse = (text: string): Record<string, never> => Bun.TOML.parse(text) as Record<string, never>;

test("nothing containerd writes or listens on is outside the data directory", () => {
  const text = renderContainerdConfig(runtimePaths("/data"), { ...settings, cniBinDirs: ["/data/agent/current/cni"], cniConfDir: "/data/agent/etc/cni/net.d" });
  const absolute = [...text.matchAll(/"(\/[^"]*)"/g)].map(([, path]) => path!);
  expect(absolute.length).toBeGreaterThan(10);
  expect(absolute.filter((path) => !path.startsWith("/data/agent/"))).toEqual([]);
});

test("what the machine cannot do is switched off", () => {
  const runtimeOf = (config: unknown): Record<string, unknown> => (config as { plugins: Record<string, Record<string, unknown>> }).plugins["io.containerd.cri.v1.runtime"]!;
  const able = parse(renderContainerdConfig(runtimePaths("/data"), settings));
  const unable = parse(renderContainerdConfig(runtimePaths("/data"), { ...settings, canLowerOomScore: false, hasApparmor: false }));
  expect([able["version"], able["oom_score"], unable["oom_score"]]).toEqual([3, -999, 0]);
  expect(runtimeOf(able)).toMatchObject({ restrict_oom_score_adj: false, disable_apparmor: false, netns_mounts_under_state_dir: true });
  expect(runtimeOf(unable)).toMatchObject({ restrict_oom_score_adj: true, disable_apparmor: true });
  expect(runtimeOf(able)["cni"]).toEqual({ bin_dirs: ["/a/cni", "/opt/cni/bin"], conf_dir: "/a/net.d", use_internal_loopback: true });
  expect((runtimeOf(able)["containerd"] as { runtimes: { runc: { options: unknown } } }).runtimes.runc.options).toEqual({ BinaryName: "/data/agent/current/bin/runc", Root: "/data/agent/run/runc", SystemdCgroup: false });
});

test("capabilities are read from the kernel's mask", () => {
  expect([canLowerOomScore("CapEff:\t000001ffffffffff\n"), canLowerOomScore("CapEff:\t000001fffeffffff\n"), canLowerOomScore("")]).toEqual([true, false, false]);
});

test("a data directory whose sockets could not be bound is refused", () => {
  expect(() => runtimePaths(`/${"x".repeat(90)}`)).toThrow("--data-dir");
});
