/**
 * /debug/pprof and /debug/flags, which components have with --profiling: a profile of the process's time, and how much it logs.
 *
 *   go tool pprof https://server:6443/debug/pprof/profile?seconds=10
 *   kubectl proxy; curl -X PUT -d 4 localhost:8001/debug/flags/v
 *
 * What Go's runtime tells of its goroutines, locks and allocations is not there, for there are none: those are answered as profiles nobody knows.
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/routes/{profiling,flags}.go, component-base/logs/logs.go, go1.26 net/http/pprof/pprof.go
 */
import type { CpuProfiler } from "./cpu-profile.ts";
import type { Verbosity } from "./log.ts";

export interface DebugAnswer { readonly status: number; readonly contentType: string; readonly body: string | Uint8Array; readonly headers: Readonly<Record<string, string>> }

export interface DebugRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  body(): Promise<string>;
  readonly signal: AbortSignal;
}

/** Undefined: none of its paths. */
export type DebugPages = (request: DebugRequest) => Promise<DebugAnswer | undefined>;

const SECONDS = 30;
/** Samples are kept in memory until the end. */
const SECONDS_MAX = 600;
const NO_SNIFFING = { "x-content-type-options": "nosniff" };

export function debugPages({ profiler, verbosity }: { readonly profiler: CpuProfiler; readonly verbosity: Verbosity }): DebugPages {
  async function profile({ query, signal }: DebugRequest): Promise<DebugAnswer> {
    const asked = /^\+?\d{1,18}$/.test(query.get("seconds") ?? "") ? Number(query.get("seconds")) : 0;
    if (asked > SECONDS_MAX) return problem(400, "profile duration exceeds server's WriteTimeout");
    const body = await profiler.profile((asked || SECONDS) * 1000, signal);
    if (!body) return problem(500, "Could not enable CPU profiling: cpu profiling already in use");
    return { status: 200, contentType: "application/octet-stream", body, headers: { ...NO_SNIFFING, "content-disposition": 'attachment; filename="profile"' } };
  }

  async function setVerbosity({ method, body }: DebugRequest): Promise<DebugAnswer> {
    const told = (status: number, text: string): DebugAnswer => ({ status, contentType: "text/plain", body: `${text}\n`, headers: NO_SNIFFING });
    if (method !== "PUT") return told(406, "unsupported http method");
    const text = await body();
    const value = levelOf(text);
    if (typeof value === "string") return told(400, `strconv.ParseUint: parsing ${JSON.stringify(text)}: ${value}`);
    verbosity.set(value);
    return told(200, `successfully set klog.logging.verbosity to ${text}`);
  }

  return async (request) => {
    const { path } = request;
    if (path === "/debug/pprof") return { status: 302, contentType: "text/html; charset=utf-8", body: '<a href="/debug/pprof/">Found</a>.\n\n', headers: { location: "/debug/pprof/" } };
    if (path === "/debug/pprof/") return { status: 200, contentType: "text/html; charset=utf-8", body: PROFILES, headers: NO_SNIFFING };
    if (path === "/debug/pprof/profile") return await profile(request);
    if (path.startsWith("/debug/pprof/")) return problem(404, "Unknown profile");
    if (path === "/debug/flags/v") return await setVerbosity(request);
    if (path === "/debug/flags" || path.startsWith("/debug/flags/")) return { status: 200, contentType: "text/html; charset=utf-8", body: FLAGS, headers: {} };
    return undefined;
  };
}

function problem(status: number, text: string): DebugAnswer { return { status, contentType: "text/plain; charset=utf-8", body: `${text}\n`, headers: { ...NO_SNIFFING, "x-go-pprof": "1" } }; }

/** What is wrong with it, as Go says it. */
function levelOf(text: string): number | string {
  if (!/^\d+$/.test(text)) return "invalid syntax";
  return Number(text) < 2 ** 31 ? Number(text) : "value out of range";
}

const FLAGS = "<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n<table>\n<tr>v<br>\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n";

const PROFILES = `<html>
<head>
<title>/debug/pprof/</title>
</head>
<body>
/debug/pprof/
<br>
Types of profiles available:
<table>
<thead><td>Count</td><td>Profile</td></thead>
<tr><td>0</td><td><a href='profile?debug=1'>profile</a></td></tr>
</table>
<p>
Profile Descriptions:
<ul>
<li><div class=profile-name>profile: </div> CPU profile, for the seconds that are given. It is read with go tool pprof.</li>
</ul>
</p>
</body>
</html>
`;
