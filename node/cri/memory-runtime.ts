/**
 * A container runtime without containers, for tests and the simulator: it answers CRI as containerd does, and its "processes" do what they are
 * told. A container runs until `exit`, or until it is stopped; ExecSync answers what `exec` says.
 */
import type { Cri, CriCall } from "./client.ts";
import { CriError } from "./client.ts";
import type { Container, ContainerConfig, ContainerEventResponse, ContainerStatus, LinuxContainerResources, Methods, PodSandbox, PodSandboxConfig } from "./gen/runtime.v1.ts";

export interface MemoryRuntime extends Cri {
  /** Every call that changed something, in order: "RunPodSandbox web", "StopContainer app". */
  readonly calls: readonly string[];
  /** The running container of that name ends. */
  exit(name: string, exitCode: number, reason?: string): void;
  /** Somebody else removes the container of that name, or the sandbox of the pod of that name with all that is in it. */
  take(name: string): void;
  /** How a command ends: 0 unless told otherwise. */
  exec: (container: string, command: readonly string[]) => number;
  /** Images that are there. Others cannot be pulled. */
  readonly images: Set<string>;
  /** Something is said to have happened to the pod of that name, and has not. */
  tellAgain(pod: string): void;
  running(): string[];
  /** The limits of the container of that name. */
  resources(name: string): LinuxContainerResources | undefined;
}

interface Box { readonly sandbox: PodSandbox; readonly config: PodSandboxConfig; ip: string }
interface Thing { readonly status: ContainerStatus; readonly sandboxId: string }

type Answer = (request: never) => object;

export function memoryRuntime({ nowMs }: { readonly nowMs: () => number }): MemoryRuntime {
  const boxes = new Map<string, Box>();
  const things = new Map<string, Thing>();
  const calls: string[] = [];
  const listeners = new Set<(event: ContainerEventResponse) => void>();
  const images = new Set<string>();
  let ids = 0;

  const nowNs = (): number => nowMs() * 1e6 + ids; // no two alike
  const nameOf = (id: string): string => things.get(id)?.status.metadata?.name ?? "";

  function found<T>(map: ReadonlyMap<string, T>, id: string | undefined): T {
    const value = map.get(id ?? "");
    if (!value) throw new CriError({ method: "", code: "NotFound", detail: `not found: ${id ?? ""}` });
    return value;
  }

  function tell(id: string, sandboxId: string, type: NonNullable<ContainerEventResponse["container_event_type"]>): void {
    const box = boxes.get(sandboxId);
    for (const listener of listeners) listener({ container_id: id, container_event_type: type, pod_sandbox_status: { id: sandboxId, labels: box?.sandbox.labels } });
  }

  function end(id: string, exitCode: number, reason: string): void {
    const { status, sandboxId } = found(things, id);
    if (status.state !== "CONTAINER_RUNNING") return;
    Object.assign(status, { state: "CONTAINER_EXITED", exit_code: exitCode, reason, finished_at: nowNs() });
    tell(id, sandboxId, "CONTAINER_STOPPED_EVENT");
  }

  function stopBox(id: string): void {
    const box = boxes.get(id);
    if (!box) return;
    for (const [containerId, { sandboxId }] of things) if (sandboxId === id) end(containerId, 137, "Error");
    if (box.sandbox.state === "SANDBOX_NOTREADY") return;
    Object.assign(box.sandbox, { state: "SANDBOX_NOTREADY" });
    box.ip = "";
    tell(id, id, "CONTAINER_STOPPED_EVENT");
  }

  function matches(labels: Readonly<Record<string, string>> | undefined, selector: Readonly<Record<string, string>> | undefined): boolean {
    return Object.entries(selector ?? {}).every(([key, value]) => labels?.[key] === value);
  }

  function asContainer({ status, sandboxId }: Thing): Container {
    return {
      id: status.id, pod_sandbox_id: sandboxId, metadata: status.metadata, image: status.image, image_ref: status.image_ref, image_id: status.image_id,
      state: status.state, created_at: status.created_at, labels: status.labels, annotations: status.annotations,
    };
  }

  const answers: { readonly [M in keyof Methods]?: (request: Methods[M]["request"]) => Methods[M]["response"] } = {
    "RuntimeService/Version": () => ({ runtime_name: "memory", runtime_version: "1" }),
    "RuntimeService/Status": () => ({ status: { conditions: [{ type: "RuntimeReady", status: true }, { type: "NetworkReady", status: true }] }, runtime_handlers: [{ name: "", features: { user_namespaces: true } }] }),
    "RuntimeService/RunPodSandbox": ({ config = {} }) => {
      const id = `box-${++ids}`;
      calls.push(`RunPodSandbox ${config.metadata?.name ?? ""}`);
      boxes.set(id, { config, ip: `10.0.0.${ids}`, sandbox: { id, metadata: config.metadata, state: "SANDBOX_READY", created_at: nowNs(), labels: config.labels, annotations: config.annotations } });
      tell(id, id, "CONTAINER_STARTED_EVENT");
      return { pod_sandbox_id: id };
    },
    "RuntimeService/StopPodSandbox": ({ pod_sandbox_id = "" }) => {
      calls.push(`StopPodSandbox ${boxes.get(pod_sandbox_id)?.config.metadata?.name ?? ""}`);
      stopBox(pod_sandbox_id);
      return {};
    },
    "RuntimeService/RemovePodSandbox": ({ pod_sandbox_id = "" }) => {
      stopBox(pod_sandbox_id);
      for (const [id, { sandboxId }] of things) if (sandboxId === pod_sandbox_id) things.delete(id);
      boxes.delete(pod_sandbox_id);
      return {};
    },
    "RuntimeService/PodSandboxStatus": ({ pod_sandbox_id }) => {
      const { sandbox, config, ip } = found(boxes, pod_sandbox_id);
      const host = config.linux?.security_context?.namespace_options?.network === "NODE";
      return { status: { ...sandbox, network: { ip: host ? "" : ip }, linux: { namespaces: { options: { network: host ? "NODE" : "POD" } } } } };
    },
    "RuntimeService/ListPodSandbox": ({ filter }) => ({ items: [...boxes.values()].map(({ sandbox }) => sandbox).filter(({ labels }) => matches(labels, filter?.label_selector)) }),
    "RuntimeService/CreateContainer": ({ pod_sandbox_id = "", config = {} }) => {
      found(boxes, pod_sandbox_id);
      const id = `container-${++ids}`;
      calls.push(`CreateContainer ${config.metadata?.name ?? ""}`);
      things.set(id, { sandboxId: pod_sandbox_id, status: statusOf(id, config, nowNs()) });
      tell(id, pod_sandbox_id, "CONTAINER_CREATED_EVENT");
      return { container_id: id };
    },
    "RuntimeService/StartContainer": ({ container_id = "" }) => {
      const { status, sandboxId } = found(things, container_id);
      calls.push(`StartContainer ${nameOf(container_id)}`);
      Object.assign(status, { state: "CONTAINER_RUNNING", started_at: nowNs() });
      tell(container_id, sandboxId, "CONTAINER_STARTED_EVENT");
      return {};
    },
    "RuntimeService/StopContainer": ({ container_id = "", timeout = 0 }) => {
      found(things, container_id);
      calls.push(`StopContainer ${nameOf(container_id)} ${timeout}s`);
      end(container_id, 143, "Error");
      return {};
    },
    "RuntimeService/RemoveContainer": ({ container_id = "" }) => {
      end(container_id, 137, "Error");
      calls.push(`RemoveContainer ${nameOf(container_id)}`);
      things.delete(container_id);
      return {};
    },
    "RuntimeService/ListContainers": ({ filter }) => ({ containers: [...things.values()].map(asContainer).filter(({ labels }) => matches(labels, filter?.label_selector)) }),
    "RuntimeService/ContainerStatus": ({ container_id }) => ({ status: { ...found(things, container_id).status } }),
    "RuntimeService/ExecSync": ({ container_id = "", cmd = [] }) => {
      found(things, container_id);
      calls.push(`ExecSync ${nameOf(container_id)} ${cmd.join(" ")}`);
      return { exit_code: runtime.exec(nameOf(container_id), cmd) };
    },
    "RuntimeService/UpdateContainerResources": ({ container_id = "", linux = {} }) => {
      calls.push(`UpdateContainerResources ${nameOf(container_id)}`);
      const { status } = found(things, container_id);
      status.resources = { linux: { ...status.resources?.linux, ...linux } };
      return {};
    },
    "RuntimeService/ReopenContainerLog": () => ({}),
    "RuntimeService/ListPodSandboxStats": () => ({ stats: [] }),
    "ImageService/ListImages": () => ({ images: [...images].map((image) => ({ id: `sha256:${image}`, repo_tags: [image], size: 1000 })) }),
    "ImageService/ImageStatus": ({ image }) => (images.has(image?.image ?? "") ? { image: { id: `sha256:${image?.image ?? ""}`, repo_tags: [image?.image ?? ""], size: 1000 } } : {}),
    "ImageService/PullImage": ({ image }) => {
      throw new CriError({ method: "ImageService/PullImage", code: "NotFound", detail: `no image ${image?.image ?? ""}` });
    },
    "ImageService/RemoveImage"({ image }) {
      images.delete((image?.image ?? "").replace("sha256:", ""));
      return {};
    },
    "ImageService/ImageFsInfo": () => ({ image_filesystems: [] }),
  };

  const runtime: MemoryRuntime = {
    calls,
    images,
    exec: () => 0,
    async call<M extends keyof Methods>(method: M, request: Methods[M]["request"], { signal }: CriCall = {}) {
      await Promise.resolve(); // an answer never comes at once
      if (signal?.aborted) throw new CriError({ method, code: "Canceled", detail: "context canceled" });
      const answer = answers[method] as Answer | undefined;
      if (!answer) throw new CriError({ method, code: "Unimplemented", detail: `unknown method ${method}` });
      return answer(request as never) as Methods[M]["response"];
    },
    async *events(signal) {
      const queue: ContainerEventResponse[] = [];
      let wake = Promise.withResolvers<void>();
      const listener = (event: ContainerEventResponse): void => {
        queue.push(event);
        wake.resolve();
      };
      const quit = (): void => wake.resolve();
      listeners.add(listener);
      signal.addEventListener("abort", quit, { once: true });
      try {
        while (!signal.aborted) {
          for (let event = queue.shift(); event; event = queue.shift()) yield event;
          await wake.promise;
          wake = Promise.withResolvers();
        }
      } finally {
        listeners.delete(listener);
        signal.removeEventListener("abort", quit);
      }
    },
    close: () => undefined,
    take(name) {
      for (const [id, { sandboxId }] of [...things]) {
        if (nameOf(id) !== name && boxes.get(sandboxId)?.config.metadata?.name !== name) continue;
        things.delete(id);
        tell(id, sandboxId, "CONTAINER_DELETED_EVENT");
      }
      for (const [id, { config }] of [...boxes]) {
        if (config.metadata?.name !== name) continue;
        tell(id, id, "CONTAINER_DELETED_EVENT");
        boxes.delete(id);
      }
    },
    exit(name, exitCode, reason = exitCode === 0 ? "Completed" : "Error") {
      for (const [id, { status }] of things) if (status.metadata?.name === name) end(id, exitCode, reason);
    },
    tellAgain(pod) { for (const [id, { config }] of boxes) if (config.metadata?.name === pod) tell(id, id, "CONTAINER_STARTED_EVENT"); },
    resources: (name) => [...things.values()].find(({ status }) => status.metadata?.name === name)?.status.resources?.linux,
    running: () => [...things.values()].filter(({ status }) => status.state === "CONTAINER_RUNNING").map(({ status }) => status.metadata?.name ?? ""),
  };
  return runtime;
}

function statusOf(id: string, { metadata, image, labels, annotations, mounts, log_path, linux }: ContainerConfig, createdNs: number): ContainerStatus {
  return {
    id, resources: { linux: linux?.resources }, metadata, state: "CONTAINER_CREATED", created_at: createdNs, image: { image: image?.user_specified_image ?? "" },
    image_ref: image?.image, image_id: image?.image, labels, annotations, mounts, log_path,
  };
}
