/** `coracle crictl`: what the node's runtime says, over CRI. A small crictl for looking; kubectl is for doing. */
import { systemClock } from "../core/lifecycle/clock.ts";
import { CriError, criClient } from "../node/cri/client.ts";
import type { Container, PodSandbox } from "../node/cri/gen/runtime.v1.ts";
import { machineSettings, mustReach, runtimeSocket } from "./tools.ts";

const ANSWER_MS_MAX = 10_000;

type Row = readonly string[];

const COMMANDS = {
  pods: "sandboxes of pods",
  ps: "containers; -a: also those that have ended",
  images: "images",
  inspect: "CONTAINER: all about a container",
  inspectp: "POD: all about a sandbox",
  info: "the runtime's own state",
  version: "which runtime it is",
} as const;

export async function crictl(argv: readonly string[]): Promise<number> {
  const [command = "", ...rest] = argv;
  if (!Object.hasOwn(COMMANDS, command)) {
    console.log(["Usage: coracle crictl COMMAND", "", ...Object.entries(COMMANDS).map(([name, help]) => `  ${name.padEnd(10)}${help}`)].join("\n"));
    return command === "--help" || command === "-h" || command === "help" ? 0 : 2;
  }
  const socket = runtimeSocket(machineSettings());
  mustReach(socket);
  const cri = criClient({ socket, nowMs: systemClock.nowMs });
  const call = { timeoutMs: ANSWER_MS_MAX };
  try {
    switch (command as keyof typeof COMMANDS) {
      case "pods": {
        const { items = [] } = await cri.call("RuntimeService/ListPodSandbox", {}, call);
        print([["POD ID", "STATE", "NAME", "NAMESPACE", "ATTEMPT"], ...items.map(podRow)]);
        break;
      }
      case "ps": {
        const filter = rest.includes("-a") ? {} : { filter: { state: { state: "CONTAINER_RUNNING" as const } } };
        const { containers = [] } = await cri.call("RuntimeService/ListContainers", filter, call);
        print([["CONTAINER", "IMAGE", "STATE", "NAME", "ATTEMPT", "POD ID", "POD"], ...containers.map(containerRow)]);
        break;
      }
      case "images": {
        const { images = [] } = await cri.call("ImageService/ListImages", {}, call);
        print([["IMAGE", "IMAGE ID", "SIZE"], ...images.flatMap(({ repo_tags = [], id = "", size = 0 }) => (repo_tags.length > 0 ? repo_tags : ["<none>"]).map((tag) => [tag, short(id), `${(Number(size) / 1e6).toFixed(1)}MB`]))]);
        break;
      }
      case "inspect": return show(await cri.call("RuntimeService/ContainerStatus", { container_id: rest[0] ?? "", verbose: true }, call));
      case "inspectp": return show(await cri.call("RuntimeService/PodSandboxStatus", { pod_sandbox_id: rest[0] ?? "", verbose: true }, call));
      case "info": return show(await cri.call("RuntimeService/Status", { verbose: true }, call));
      case "version": return show(await cri.call("RuntimeService/Version", {}, call));
    }
  } catch (error) {
    if (!(error instanceof CriError) || (error.code !== "DeadlineExceeded" && error.code !== "Unavailable")) throw error;
    throw new Error(`no container runtime answers at ${socket}. Is Coracle running on this machine, and are you root?`, { cause: error });
  } finally {
    cri.close();
  }
  return 0;
}

function podRow({ id = "", state = "SANDBOX_READY", metadata }: PodSandbox): Row {
  return [short(id), state === "SANDBOX_READY" ? "Ready" : "NotReady", metadata?.name ?? "", metadata?.namespace ?? "", String(metadata?.attempt ?? 0)];
}

function containerRow({ id = "", image, state = "CONTAINER_CREATED", metadata, pod_sandbox_id = "", labels }: Container): Row {
  return [short(id), short(image?.image ?? ""), state.replace("CONTAINER_", "").toLowerCase(), metadata?.name ?? "", String(metadata?.attempt ?? 0), short(pod_sandbox_id), labels?.["io.kubernetes.pod.name"] ?? ""];
}

function short(id: string): string {
  return id.replace(/^sha256:/, "").slice(0, /^(sha256:)?[0-9a-f]{64}$/.test(id) ? 13 : undefined);
}

function print(rows: readonly Row[]): void {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  for (const row of rows) console.log(row.map((cell, column) => cell.padEnd(widths[column]!)).join("   ").trimEnd());
}

function show(value: unknown): number {
  console.log(JSON.stringify(value, (_, inner: unknown) => (inner instanceof Uint8Array ? Buffer.from(inner).toString() : inner), 2));
  return 0;
}
