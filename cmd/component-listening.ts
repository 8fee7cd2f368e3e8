/** Where the controllers and the scheduler tell how they are: bind-address and secure-port of --kube-controller-manager-arg and --kube-scheduler-arg. Nobody but this machine reaches them unless that is said, as with kubeadm and k3s. */
import { parseIp } from "../core/net/cidr.ts";
import { ConfigError } from "./config/config.ts";

/** Port 0: nowhere. */
export interface Listening { readonly address: string; readonly port: number }

/** Source: kubernetes v1.36 k8s.io/cloud-provider/ports.go, cmd/kube-controller-manager/app/options, pkg/scheduler/apis/config/types.go */
export const CONTROLLERS_LISTENING: Listening = { address: "127.0.0.1", port: 10_257 };
export const SCHEDULER_LISTENING: Listening = { address: "127.0.0.1", port: 10_259 };

export const LISTENING_NAMES = ["bind-address", "secure-port"] as const;

/** Undefined: the name says nothing of it. Throws ConfigError. */
export function listeningWith(before: Listening, flag: string, { name, value }: { readonly name: string; readonly value: string }): Listening | undefined {
  if (name === "bind-address") {
    if (parseIp(value)) return { ...before, address: value };
    throw new ConfigError(`--${flag} bind-address must be an IP address, not ${JSON.stringify(value)}`);
  }
  if (name !== "secure-port") return undefined;
  if (/^\d{1,5}$/.test(value) && Number(value) < 65_536) return { ...before, port: Number(value) };
  throw new ConfigError(`--${flag} secure-port must be a port, or 0 for none, not ${JSON.stringify(value)}`);
}
