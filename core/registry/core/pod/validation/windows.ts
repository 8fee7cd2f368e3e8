/** What only pods on Windows have, and what they cannot have. Source: kubernetes v1.36 pkg/apis/core/validation/validation.go validateWindows…, validateOS */
import { child, type FieldError, forbidden, invalid, notSupported, required } from "../../../../api/meta/field-error.ts";
import type { PodSpec, WindowsSecurityContextOptions } from "../../../../api/gen/core.v1.ts";
import { byteLength } from "../../../../api/meta/byte-length.ts";
import { dns1123Subdomain } from "../../../../api/meta/names.ts";
import { problems } from "../../checks/values.ts";
import { containersOf } from "../containers.ts";

const GMSA_SPEC_KIB_MAX = 64;
const DOMAIN_BYTES_MAX = 256;
const USER_BYTES_MAX = 104;
const NETBIOS = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/;
const DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
const DNS = new RegExp(`^${DNS_LABEL}(?:\\.${DNS_LABEL})*$`);
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL = /[\x00-\x1f\x7f]/;

export function* validateWindowsOptions(path: string, { gmsaCredentialSpecName, gmsaCredentialSpec, runAsUserName }: WindowsSecurityContextOptions): Iterable<FieldError> {
  if (gmsaCredentialSpecName !== undefined) yield* problems(child(path, "gmsaCredentialSpecName"), gmsaCredentialSpecName, dns1123Subdomain(gmsaCredentialSpecName));
  if (gmsaCredentialSpec !== undefined) {
    const at = child(path, "gmsaCredentialSpec");
    if (gmsaCredentialSpec === "") yield invalid(at, gmsaCredentialSpec, "gmsaCredentialSpec cannot be an empty string");
    else if (byteLength(gmsaCredentialSpec) > GMSA_SPEC_KIB_MAX * 1024) yield invalid(at, gmsaCredentialSpec, `gmsaCredentialSpec size must be under ${GMSA_SPEC_KIB_MAX} KiB`);
  }
  if (runAsUserName !== undefined) for (const text of userNameProblems(runAsUserName)) yield invalid(child(path, "runAsUserName"), runAsUserName, text);
}

/** DOMAIN\User or User. */
function* userNameProblems(name: string): Iterable<string> {
  const parts = name.split("\\");
  if (name === "") yield "runAsUserName cannot be an empty string";
  else if (CONTROL.test(name)) yield "runAsUserName cannot contain control characters";
  else if (parts.length > 2) yield "runAsUserName cannot contain more than one backslash";
  else {
    const user = parts.at(-1)!;
    const domain = parts.length === 2 ? parts[0]! : undefined;
    if (domain !== undefined && byteLength(domain) >= DOMAIN_BYTES_MAX) yield `runAsUserName's Domain length must be under ${DOMAIN_BYTES_MAX} characters`;
    if (domain !== undefined && !NETBIOS.test(domain) && !DNS.test(domain)) yield "runAsUserName's Domain doesn't match the NetBios nor the DNS format";
    if (user === "") yield "runAsUserName's User cannot be empty";
    else if (byteLength(user) > USER_BYTES_MAX) yield `runAsUserName's User length must not be longer than ${USER_BYTES_MAX} characters`;
    if (/^[. ]+$/.test(user)) yield "runAsUserName's User cannot contain only periods or spaces";
    if (/["/\\:;|=,+*?<>@[\]]/.test(user)) yield `runAsUserName's User cannot contain the following characters: "/\\:;|=,+*?<>@[]`;
  }
}

/** A container in the host's own process space: all of the pod's, or none. */
export function* validateHostProcess(path: string, spec: Readonly<PodSpec>): Iterable<FieldError> {
  const pod = spec.securityContext?.windowsOptions?.hostProcess;
  let all = 0;
  let hostProcess = 0;
  for (const { container, path: at } of containersOf(spec, path)) {
    all++;
    const own = container.securityContext?.windowsOptions?.hostProcess;
    if (pod !== undefined && own !== undefined && pod !== own)
      yield invalid(child(at, "securityContext", "windowsOptions", "hostProcess"), own, `pod hostProcess value must be identical if both are specified, was ${pod}`);
    if (own ?? pod) hostProcess++;
  }
  if (hostProcess === 0) return;
  if (hostProcess !== all) yield invalid(path, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers");
  if (!spec.hostNetwork) yield invalid(child(path, "hostNetwork"), false, "hostNetwork must be true if pod contains any hostProcess containers");
}

const OTHER_OS = "cannot be set for a windows pod";
/** In the order in which upstream looks at them. */
const POD_FIELDS_LINUX = [
  "securityContext.appArmorProfile", "securityContext.seLinuxOptions", "hostUsers", "hostPID", "hostIPC", "securityContext.seccompProfile", "securityContext.fsGroup",
  "securityContext.fsGroupChangePolicy", "securityContext.sysctls", "shareProcessNamespace", "securityContext.runAsUser", "securityContext.runAsGroup",
  "securityContext.supplementalGroups", "securityContext.supplementalGroupsPolicy", "securityContext.seLinuxChangePolicy",
] as const;
const CONTAINER_CONTEXT_FIELDS_LINUX = [
  "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
] as const;

/** What spec.os.name rules out. */
export function* validateOs(path: string, spec: Readonly<PodSpec>): Iterable<FieldError> {
  const name = spec.os?.name;
  if (!spec.os) return;
  if (!name) yield required(child(path, "os", "name"));
  else if (name === "linux") yield* validateLinux(path, spec);
  else if (name === "windows") yield* validateWindows(path, spec);
  else yield notSupported(child(path, "os"), name, ["linux", "windows"]);
}

function* validateLinux(path: string, spec: Readonly<PodSpec>): Iterable<FieldError> {
  const text = "windows options cannot be set for a linux pod";
  if (spec.securityContext?.windowsOptions) yield forbidden(child(path, "securityContext", "windowsOptions"), text);
  for (const { container, path: at } of containersOf(spec, path))
    if (container.securityContext?.windowsOptions) yield forbidden(child(at, "securityContext", "windowsOptions"), text);
}

function* validateWindows(path: string, spec: Readonly<PodSpec>): Iterable<FieldError> {
  const { securityContext, hostUsers, shareProcessNamespace } = spec;
  const set: Readonly<Record<string, unknown>> = {
    hostUsers, shareProcessNamespace, hostPID: spec.hostPID || undefined, hostIPC: spec.hostIPC || undefined,
    ...Object.fromEntries(Object.entries(securityContext ?? {}).map(([field, value]) => [`securityContext.${field}`, field === "sysctls" && !securityContext?.sysctls?.length ? undefined : value])),
  };
  for (const field of POD_FIELDS_LINUX) if (set[field] !== undefined) yield forbidden(child(path, field), OTHER_OS);
  for (const { container, path: at } of containersOf(spec, path))
    for (const field of CONTAINER_CONTEXT_FIELDS_LINUX) if (container.securityContext?.[field] !== undefined) yield forbidden(child(at, "securityContext", field), OTHER_OS);
}
