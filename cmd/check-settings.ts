/**
 * `coracle check-settings server|agent …`, which is for install.sh: whether a server or an agent would start with this command line, these variables and the config file, before what runs is stopped
 * for it. What takes a running machine to know is found out by the start.
 */
import { existsSync } from "node:fs";
import { superuserAuthorizer } from "../core/authz/authz.ts";
import { systemClock } from "../core/lifecycle/clock.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { isOfAnyMachine } from "../node/network/node-ip.ts";
import { kubeconfigMode } from "./admin-kubeconfig.ts";
import { serversOf } from "./agent.ts";
import { apiServerArgs } from "./apiserver-args.ts";
import { auditOf } from "./audit.ts";
import { authorizationSettings } from "./authorization.ts";
import { ConfigError, loadSettings, readText } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { checkRanges, isOfServicesFamily, nodePortCidrs, otherFamily, withOwnAddresses } from "./config/ranges.ts";
import { checkedGates } from "./control-plane/gates.ts";
import { controllerSettings } from "./controller-settings.ts";
import { coordinatedLeadership } from "./coordinated-leadership.ts";
import { checkedTls } from "./datastore.ts";
import { requestTimes } from "./fairness.ts";
import { kubeletSettings } from "./kubelet-settings.ts";
import { thisNode } from "./node-identity.ts";
import { paths } from "./paths.ts";
import { proxySettings } from "./proxy-settings.ts";
import { registriesOf } from "./registries-file.ts";
import { schedulerSetup } from "./scheduler-settings.ts";
import { snapshotEveryMs } from "./snapshot-schedule.ts";
import { stderrLog } from "./stderr-log.ts";
import { givenToken } from "./token-file.ts";

export async function checkSettings([command = "", ...argv]: readonly string[]): Promise<number> {
  if (command !== "server" && command !== "agent") throw new ConfigError(`a machine is a server or an agent, and ${JSON.stringify(command)} is neither`);
  const settings = withOwnAddresses(loadSettings(command, { argv, env: process.env, readFile: readText }));
  if (command === "server") await checkServer(settings);
  else serversOf(settings);
  givenToken(settings);
  stderrLog(settings.logLevel);
  if (!settings.disableAgent) await checkNode(settings);
  return 0;
}

async function checkServer(settings: Settings): Promise<void> {
  checkRanges(settings);
  await checkFamily(settings);
  kubeconfigMode(settings);
  checkedTls(settings);
  const args = apiServerArgs(settings.kubeApiserverArg);
  const base = { args, clock: systemClock, log: stderrLog("error"), metrics: metricsRegistry() };
  const gates = checkedGates(args, base.log);
  coordinatedLeadership(args);
  requestTimes(args);
  auditOf(args, base);
  authorizationSettings({ ...base, serverId: "", node: superuserAuthorizer, rbac: superuserAuthorizer }); // which nobody asks
  snapshotEveryMs(settings, { isShared: settings.datastoreEndpoint !== undefined });
  schedulerSetup(settings, systemClock, gates);
  controllerSettings(settings.kubeControllerManagerArg, { clusterCidrs: settings.clusterCidr.split(",") });
}

/**
 * A new cluster's. What there is goes on as it is, and a machine that boots may have but some of its addresses yet; who installs has them all.
 * Source: kubernetes v1.36 cmd/kube-apiserver/app/options/validation.go (validatePublicIPServiceClusterIPRangeIPFamilies)
 */
async function checkFamily(settings: Settings): Promise<void> {
  if (settings.datastoreEndpoint !== undefined || existsSync(paths(settings.dataDir).tls)) return;
  const address = settings.advertiseAddress ?? (await thisNode(settings, { log: stderrLog("error") })).ips[0]!;
  if (!isOfAnyMachine(address) && !isOfServicesFamily(settings, address)) throw new ConfigError(otherFamily(address, settings));
}

async function checkNode(settings: Settings): Promise<void> {
  const node = await thisNode(settings, { log: stderrLog("error") });
  kubeletSettings(settings, node, paths(settings.dataDir));
  if (process.platform === "linux") registriesOf(settings.privateRegistry);
  nodePortCidrs(settings, node.ips);
  proxySettings(settings.kubeProxyArg, { ipv6: node.ips[0]?.includes(":") ?? false });
}
