/** An admission request as the server would make it, from the few parts a test cares about. */
import type { AdmissionRequest } from "../core/admission/plugin.ts";
import type { AdmissionPlugin, Operation } from "../core/admission/plugin.ts";
import { Reinvocation } from "../core/admission/reinvocation.ts";
import type { ApiObject } from "../core/api/meta/object-meta.ts";
import type { StatusError } from "../core/api/meta/status-error.ts";
import type { UserInfo } from "../core/api/request/user.ts";

interface Parts {
  readonly operation?: Operation;
  /** "pods", "pods/status", "ingresses.networking.k8s.io" */
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly object?: unknown;
  readonly old?: unknown;
  readonly user?: UserInfo;
}

export function admissionRequest({ operation = "CREATE", resource: text, namespace = "default", name, object, old, user = { name: "jane", groups: ["system:authenticated"] } }: Parts): AdmissionRequest {
  const [full = "", subresource = ""] = text.split("/");
  const [resource = "", ...group] = full.split(".");
  const subject = object as ApiObject | undefined;
  return {
    operation, group: group.join("."), version: "v1", kind: subject?.kind ?? "", resource, subresource, namespace, name: name ?? subject?.metadata?.name ?? "", user,
    object: subject, oldObject: old as ApiObject | undefined, options: {}, dryRun: false, signal: new AbortController().signal, warn() {}, annotate() {},
  };
}

/** Runs one plug-in as the chain does. "ok", "not handled", or the message it refuses with. */
export async function runPlugin(plugin: AdmissionPlugin, request: AdmissionRequest, phases: readonly ("admit" | "validate")[] = ["admit", "validate"]): Promise<string> {
  if (!plugin.handles(request)) return "not handled";
  try {
    for (const phase of phases) await plugin[phase]?.(request, new Reinvocation());
    return "ok";
  } catch (error) {
    const { code, message } = error as StatusError;
    return code === 403 || code === undefined ? message : `${code} ${message}`;
  }
}
