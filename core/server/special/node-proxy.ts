/**
 * Requests that are answered by a node or by what runs there: logs, exec, attach, port-forward, and the proxies to pods, services and nodes.
 *
 *   const connections = nodeProxyHandlers({ dialer: directDialer(clock), kubeletTls: () => ({ ca, cert, key }) });
 *   connections(info)?.(scope)
 */
import { type Answer, raw } from "../answer.ts";
import { type Backend, nodeBackend, type NodeProxyDeps, podBackend, serviceBackend } from "../node-proxy/backend.ts";
import { admitConnect } from "../node-proxy/connect-options.ts";
import { forwardHttp, forwardUpgrade, isUpgrade } from "../node-proxy/forward.ts";
import { podAttach, podExec, podLog, podPortForward } from "../node-proxy/pod-streams.ts";
import type { ResourceRequestInfo } from "../request-info.ts";
import type { ResourceHandler, Scope } from "../scope.ts";

type ProxyHandler = (deps: NodeProxyDeps, scope: Scope) => Promise<Answer>;

const STREAMS: Readonly<Record<string, ProxyHandler>> = {
  "get pods/log": podLog,
  "get pods/exec": podExec, "create pods/exec": podExec,
  "get pods/attach": podAttach, "create pods/attach": podAttach,
  "get pods/portforward": podPortForward, "create pods/portforward": podPortForward,
};

interface Proxy { readonly options: string; readonly locate: (deps: NodeProxyDeps, scope: Scope) => Promise<Backend> }

const PROXIES: Readonly<Record<string, Proxy>> = {
  pods: { options: "PodProxyOptions", locate: podBackend },
  services: { options: "ServiceProxyOptions", locate: serviceBackend },
  nodes: { options: "NodeProxyOptions", locate: nodeBackend },
};

export function nodeProxyHandlers(deps: NodeProxyDeps): (info: ResourceRequestInfo) => ResourceHandler | undefined {
  return ({ group, verb, resource, subresource, name }) => {
    if (group !== "" || name === "") return undefined;
    const stream = STREAMS[`${verb} ${resource}/${subresource}`];
    if (stream) return (scope) => stream(deps, scope);
    const proxy = subresource === "proxy" && Object.hasOwn(PROXIES, resource) ? PROXIES[resource]! : undefined;
    return proxy && ((scope) => forward(deps, scope, proxy));
  };
}

async function forward(deps: NodeProxyDeps, scope: Scope, { options, locate }: Proxy): Promise<Answer> {
  const { request, info } = scope;
  const { path = "" } = await admitConnect<{ readonly path?: string }>(scope, options, info.rest === "" ? {} : { path: info.rest });
  const backend = await locate(deps, scope);
  const query = request.wire?.rawQuery ?? request.query.toString();
  if (isUpgrade(request)) return await forwardUpgrade(scope, backend, `${path === "" ? "/" : path}${query === "" ? "" : `?${query}`}`);
  // a page must know that it is below something, or its relative links miss it
  if (info.rest === "" && (request.method === "GET" || request.method === "HEAD"))
    return { ...raw("", "text/plain; charset=utf-8", 301), headers: { location: `${request.path}/${query === "" ? "" : `?${query}`}` } };
  const prefix = request.path.slice(0, request.path.length - info.rest.length);
  return await forwardHttp(scope, { backend, path, prefix });
}
