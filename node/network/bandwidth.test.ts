import { expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import { oldNftDiesOf } from "../../test/old-nft.ts";
import { type Cri, CriError } from "../cri/client.ts";
import { bandwidthText, limitOf } from "./bandwidth.ts";
import { limiting } from "./limiting.ts";

const annotations = (ingress?: string, egress?: string) => ({ ...(ingress && { "kubernetes.io/ingress-bandwidth": ingress }), ...(egress && { "kubernetes.io/egress-bandwidth": egress }) });

test("annotations are bits a second, rules bytes; both families", () => {
  expect([annotations("8M"), annotations(undefined, "1Ki"), annotations("10G", "1k"), annotations("much"), annotations()].map(limitOf)).toEqual([
    { ingress: 1_000_000, egress: undefined }, { ingress: undefined, egress: 128 }, { ingress: 1_250_000_000, egress: 125 }, undefined, undefined,
  ]);
  const text = bandwidthText([{ name: "default/web", ips: ["10.42.0.5", "fd42::5"], limit: { ingress: 1_000_000, egress: 125 } }]);
  expect(text.trim().split("\n").slice(5)).toEqual([
    'add rule bridge coracle-bandwidth egress ip saddr 10.42.0.5 limit rate over 125 bytes/second burst 131072 bytes drop comment "default/web"',
    'add rule bridge coracle-bandwidth ingress ip daddr 10.42.0.5 limit rate over 1000000 bytes/second burst 250000 bytes drop comment "default/web"',
    'add rule bridge coracle-bandwidth egress ip6 saddr fd42::5 limit rate over 125 bytes/second burst 131072 bytes drop comment "default/web"',
    'add rule bridge coracle-bandwidth ingress ip6 daddr fd42::5 limit rate over 1000000 bytes/second burst 250000 bytes drop comment "default/web"',
  ]);
  expect(oldNftDiesOf(text)).toEqual([]);
  expect(bandwidthText([])).toBe("add table bridge coracle-bandwidth\ndelete table bridge coracle-bandwidth\n");
});

test("the bandwidth of a pod is limited from its sandbox's start to its end, also across a restart; others cost nothing", async () => {
  const boxes = new Map<string, { readonly annotations: Record<string, string>; readonly ip: string }>();
  const asked: string[] = [], scripts: string[] = [];
  const begin = () => limiting({
    async call(method: string, request: { readonly config?: { readonly annotations?: Record<string, string> }; readonly pod_sandbox_id?: string }) {
      asked.push(method.slice("RuntimeService/".length));
      if (method === "RuntimeService/ListPodSandbox") return { items: [...boxes].map(([id, box]) => ({ id, metadata: { namespace: "default", name: "p" }, annotations: box.annotations })) };
      if (method === "RuntimeService/PodSandboxStatus") return { status: { network: { ip: boxes.get(request.pod_sandbox_id!)!.ip } } };
      if (method === "RuntimeService/StopPodSandbox") boxes.delete(request.pod_sandbox_id!);
      if (method !== "RuntimeService/RunPodSandbox") return {};
      const id = `box${boxes.size}`;
      boxes.set(id, { annotations: request.config?.annotations ?? {}, ip: `10.42.0.${boxes.size}` });
      return { pod_sandbox_id: id };
    },
  } as unknown as Cri, { nft: { async apply(text) { scripts.push(text); } }, log: silentLog });
  const start = (): Cri => begin().cri;
  const run = async (cri: Cri, of: Record<string, string>): Promise<void> => void (await cri.call("RuntimeService/RunPodSandbox", { config: { metadata: { namespace: "default", name: "p" }, annotations: of } as never }));
  const stop = async (cri: Cri, id: string): Promise<void> => void (await cri.call("RuntimeService/StopPodSandbox", { pod_sandbox_id: id }));

  const first = start();
  await run(first, {});
  expect(asked).toEqual(["RunPodSandbox"]);
  await run(first, annotations("8M"));
  expect(scripts.at(-1)).toContain("ip daddr 10.42.0.1 limit rate over 1000000 bytes/second");
  await begin().renew(); // after a restart
  expect(scripts.at(-1)).toBe(scripts.at(-2));
  const second = start();
  await run(second, annotations(undefined, "80M"));
  expect(scripts.at(-1)).toContain("10.42.0.1 ");
  expect(scripts.at(-1)).toContain("ip saddr 10.42.0.2 limit rate over 10000000 bytes/second");
  await stop(second, "box1");
  expect(scripts.at(-1)).not.toContain("10.42.0.1 ");
  const written = scripts.length;
  await stop(second, "box0");
  expect(scripts.length).toBe(written);
  await stop(start(), "box2"); // before anything else
  expect(scripts.slice(written)).toEqual([bandwidthText([])]);
});

test("a sandbox that goes while those of before are looked through keeps no pod from its limit, and leaves no rule to whoever has its address next", async () => {
  const scripts: string[] = [], ready = ["gone", "ending"], held = Promise.withResolvers<void>(), asked = Promise.withResolvers<void>();
  const { cri } = limiting({
    async call(method: string, request: { readonly pod_sandbox_id?: string }) {
      if (method === "RuntimeService/ListPodSandbox") return { items: ready.map((id) => ({ id, metadata: { namespace: "default", name: id }, annotations: annotations("8M") })) };
      if (method === "RuntimeService/RunPodSandbox") return { pod_sandbox_id: "new" };
      if (method !== "RuntimeService/PodSandboxStatus") return {};
      if (request.pod_sandbox_id === "gone") throw new CriError({ method: "PodSandboxStatus", code: "NotFound", detail: "not found" });
      if (request.pod_sandbox_id === "ending") {
        asked.resolve();
        await held.promise;
      }
      return { status: { network: { ip: request.pod_sandbox_id === "new" ? "10.42.0.3" : "10.42.0.2" } } };
    },
  } as unknown as Cri, { nft: { async apply(text) { scripts.push(text); } }, log: silentLog });
  const started = cri.call("RuntimeService/RunPodSandbox", { config: { metadata: { namespace: "default", name: "new" }, annotations: annotations("8M") } as never });
  await asked.promise;
  const stopped = cri.call("RuntimeService/StopPodSandbox", { pod_sandbox_id: "ending" });
  await Bun.sleep(0);
  held.resolve();
  await Promise.all([started, stopped]);
  expect([scripts.at(-1)!.includes("10.42.0.3 "), scripts.at(-1)!.includes("10.42.0.2 ")]).toEqual([true, false]);
});

test("a sandbox of before of which the runtime cannot tell now is asked for again with the next pod: it ran without its limit until the next start", async () => {
  const scripts: string[] = [];
  let lists = 0, isIll = true;
  const { cri } = limiting({
    async call(method: string, request: { readonly pod_sandbox_id?: string }) {
      if (method === "RuntimeService/ListPodSandbox") {
        lists++;
        return { items: [{ id: "old", metadata: { namespace: "default", name: "old" }, annotations: annotations("8M") }] };
      }
      if (method === "RuntimeService/RunPodSandbox") return { pod_sandbox_id: "new" };
      if (request.pod_sandbox_id === "old" && isIll) throw new CriError({ method: "PodSandboxStatus", code: "DeadlineExceeded", detail: "busy" });
      return { status: { network: { ip: request.pod_sandbox_id === "new" ? "10.42.0.3" : "10.42.0.2" } } };
    },
  } as unknown as Cri, { nft: { async apply(text) { scripts.push(text); } }, log: silentLog });
  const limited = async (): Promise<readonly boolean[]> => {
    await cri.call("RuntimeService/RunPodSandbox", { config: { metadata: { namespace: "default", name: "new" }, annotations: annotations("8M") } as never });
    return ["10.42.0.3 ", "10.42.0.2 "].map((ip) => scripts.at(-1)!.includes(ip));
  };
  expect(await limited()).toEqual([true, false]);
  isIll = false;
  expect([await limited(), await limited(), lists]).toEqual([[true, true], [true, true], 2]);
});
