/** The options objects of pods/exec, …/attach, …/portforward, …/proxy: read from the query, and shown to admission. */
import type { AdmissionRequest } from "../../admission/plugin.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest } from "../../api/meta/status-error.ts";
import { isTrue } from "../../api/request/query.ts";
import type { Scope } from "../scope.ts";
import { annotations } from "../verbs/write.ts";

/** As it is written: what is false or empty is left out, but for the command. */
export interface PodStreamOptions {
  readonly stdin?: boolean;
  readonly stdout?: boolean;
  readonly stderr?: boolean;
  readonly tty?: boolean;
  readonly container?: string;
}

export interface PodExecOptions extends PodStreamOptions { readonly command: readonly string[] | null }

export function attachOptionsOf(query: URLSearchParams): PodStreamOptions {
  const container = query.get("container");
  return { ...Object.fromEntries(["stdin", "stdout", "stderr", "tty"].flatMap((name) => (isTrue(query.get(name)) ? [[name, true]] : []))), ...(container && { container }) };
}

export function execOptionsOf(query: URLSearchParams): PodExecOptions {
  const command = query.getAll("command");
  return { ...attachOptionsOf(query), command: command.length > 0 ? command : null };
}

/** Throws 400. Source: apimachinery pkg/runtime/conversion.go */
export function portsOf(query: URLSearchParams): readonly number[] {
  return query.getAll("ports").flatMap((text) => text.split(",")).map((text) => {
    const why = !/^\d+$/.test(text) ? "invalid syntax" : Number(text) > PORT_MAX ? "value out of range" : undefined;
    if (why !== undefined) throw badRequest(`cannot convert to []int32: strconv.ParseUint: parsing ${JSON.stringify(text)}: ${why}`);
    return Number(text);
  });
}

const PORT_MAX = 65_535;

/** Runs CONNECT admission, and answers what it has made of the options. Throws what it throws, and 400 for a dry run. */
export async function admitConnect<T>({ server, info, user, request, served: { row }, signal, warnings, audit, metered, span }: Scope, kind: string, options: T): Promise<T> {
  if (request.query.has("dryRun")) throw badRequest("dryRun is not supported");
  const asked: AdmissionRequest = {
    operation: "CONNECT", group: row.group, version: row.version, resource: row.plural, kind, subresource: info.subresource, namespace: info.namespace, name: info.name,
    object: { kind, apiVersion: "v1", ...options } as unknown as ApiObject,
    oldObject: undefined, options: {}, dryRun: false, user, signal,
    warn: (text) => void warnings.push(text),
    ...annotations({ audit, metered }),
    span,
  };
  await server.admission.admit(asked);
  await server.admission.validate(asked);
  return asked.object as T;
}
