import { expect, test } from "vitest";
import type { Container, Pod } from "../../../core/api/gen/core.v1.ts";
import { verifyNotAdministrator, windowsContainer, windowsPath, windowsSandbox } from "./windows-container.ts";

function pod({ containers = [{}], ...spec }: { containers?: object[]; [field: string]: unknown } = {}): Pod {
  return { apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "default", uid: "u" }, spec: { ...spec, containers: containers.map((container, i) => ({ name: `c${i}`, ...container })) } } as unknown as Pod;
}

const windows = (options: object): object => ({ securityContext: { windowsOptions: options } });

test("a container is limited as a job object, and runs as whom its options name", () => {
  const of = (limits: object | undefined, cpus = 4): unknown => windowsContainer(pod(), { name: "c", resources: { limits } } as Container, { imageUser: "", cpus }).resources;
  expect(of(undefined)).toEqual({});
  expect(of({ cpu: "1", memory: "512Mi" })).toEqual({ cpu_maximum: 2500, memory_limit_in_bytes: 512 * 1024 ** 2 });
  expect(of({ cpu: "1m" }, 64)).toEqual({ cpu_maximum: 1 }); // never nothing
  expect(of({ cpu: "99" })).toEqual({ cpu_maximum: 10_000 }); // never more than all

  const both = pod({ ...windows({ runAsUserName: "Pod", gmsaCredentialSpec: "{}" }), containers: [windows({ runAsUserName: "Own" }), {}] });
  const [own, plain] = both.spec.containers;
  expect(windowsContainer(both, own!, { imageUser: "Image", cpus: 1 }).security_context).toEqual({ run_as_username: "Own", credential_spec: "{}" });
  expect(windowsContainer(both, plain!, { imageUser: "Image", cpus: 1 }).security_context).toEqual({ run_as_username: "Pod", credential_spec: "{}" });
  expect(windowsContainer(pod(), plain!, { imageUser: "Image", cpus: 1 }).security_context).toEqual({ run_as_username: "Image" });
  expect(windowsSandbox(both)).toEqual({ security_context: { run_as_username: "Pod", credential_spec: "{}" } });
});

test("HostProcess containers come alone and on the host's network", () => {
  const host = windows({ hostProcess: true });
  expect(windowsSandbox(pod({ hostNetwork: true, ...host }))).toEqual({ security_context: { host_process: true } });
  expect(windowsSandbox(pod())).toEqual({ security_context: {} });
  const refused: readonly (readonly [spec: Parameters<typeof pod>[0], message: string])[] = [
    [{ hostNetwork: true, containers: [host, {}] }, "pod must not contain both HostProcess and non-HostProcess containers"],
    [{ ...host }, "hostNetwork is required if Pod contains HostProcess containers"],
    [{ hostNetwork: true, ...windows({ hostProcess: false }), containers: [host] }, "pod must not contain any HostProcess containers if Pod's WindowsOptions.HostProcess is set to false"],
  ];
  for (const [spec, message] of refused) expect(() => windowsSandbox(pod(spec))).toThrow(message);
});

test("an administrator is root", () => {
  const check = (spec: { containers?: object[]; [field: string]: unknown }, imageUser: string) => (): void => verifyNotAdministrator(pod(spec), pod(spec).spec.containers[0]!, imageUser);
  const strict = { securityContext: { runAsNonRoot: true } };
  expect(check({}, "ContainerAdministrator")).not.toThrow();
  expect(check(strict, "ContainerUser")).not.toThrow();
  expect(check(strict, "containeradministrator")).toThrow('container\'s runAsUser (containeradministrator) which will be regarded as root identity and will break non-root policy (pod: "web_default(u)", container: c0)');
  expect(check({ ...strict, containers: [windows({ runAsUserName: "ContainerAdministrator" })] }, "")).toThrow("container's runAsUserName (ContainerAdministrator)");
  expect(check({ ...strict, containers: [windows({ runAsUserName: "ContainerUser" })] }, "ContainerAdministrator")).not.toThrow();
});

test("paths have a drive", () => {
  for (const [path, expected] of [["/var/run/secrets", "c:/var/run/secrets"], ["\\data", "c:\\data"], ["data", "c:\\data"], ["D:\\data", "D:\\data"], ["\\\\.\\pipe\\docker_engine", "\\\\.\\pipe\\docker_engine"]] as const)
    expect(windowsPath(path)).toBe(expected);
});
