/** Connections that last as long as their client wants; watches, of which the same is true, are counted apart. Source: kubernetes v1.36 apiserver/pkg/server/filters/longrunning.go */
import type { RequestInfo } from "./request-info.ts";

const LASTING: ReadonlySet<string> = new Set(["attach", "exec", "proxy", "log", "portforward"]);

export function isLasting(info: RequestInfo): boolean { return info.verb === "proxy" || (info.isResource ? LASTING.has(info.subresource) : info.path.startsWith("/debug/pprof/")); }
