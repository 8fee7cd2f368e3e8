/** The options objects of pods/exec, …/attach, …/portforward, …/proxy: read from the query, and shown to admission. */
import type { AdmissionRequest } from "../../admission/plugin.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest } from "../../api/meta/status-error.ts";
import type { Scope } from "../scope.ts";

export interface PodStreamOptions {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
  readonly container: string;
  readonly command: readonly string[];
}

export function streamOptionsOf(query: URLSearchParams): PodStreamOptions {
  return {
    stdin: isTrue(query.get("stdin")), stdout: isTrue(query.get("stdout")), stderr: isTrue(query.get("stderr")), tty: isTrue(query.get("tty")),
    container: query.get("container") ?? "", command: query.getAll("command"),
  };
}

export function portsOf(query: URLSearchParams): readonly number[] {
  return query.getAll("ports").flatMap((text) => text.split(",")).map((text) => {
    const port = Number(text);
    if (!Number.isInteger(port) || text === "") throw badRequest(`strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`);
    return port;
  });
}

/** Only an absent value, "0" and "false" are false. Source: apimachinery pkg/runtime/conversion.go */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== "0" && value.toLowerCase() !== "false";
}

/** Runs CONNECT admission. Throws what it throws, and 400 for a dry run. */
export async function admitConnect({ server, info, user, request, served: { row }, signal, warnings, audit }: Scope, kind: string, options: Readonly<Record<string, unknown>>): Promise<void> {
  if (request.query.has("dryRun")) throw badRequest("dryRun is not supported");
  const asked: AdmissionRequest = {
    operation: "CONNECT", group: row.group, version: row.version, resource: row.plural, kind, subresource: info.subresource, namespace: info.namespace, name: info.name,
    object: { kind, apiVersion: "v1", ...options } as unknown as ApiObject,
    oldObject: undefined, options: {}, dryRun: false, user, signal,
    warn: (text) => void warnings.push(text),
    annotate: (key, value) => audit?.annotate(key, value),
  };
  await server.admission.admit(asked);
  await server.admission.validate(asked);
}
