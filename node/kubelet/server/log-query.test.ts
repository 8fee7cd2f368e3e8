import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { afterAll, expect, test } from "vitest";
import { ExecError, type ExecResult } from "../../os/exec.ts";
import type { KubeletApi } from "../kubelet-api.ts";
import type { AnswerError } from "./answer.ts";
import { logQuery, problemOf } from "./log-query.ts";
import { route, type Routed } from "./routes.ts";

const logDir = mkdtempSync(join(tmpdir(), "logs-"));
mkdirSync(join(logDir, "nginx"));
writeFileSync(join(logDir, "nginx", "nginx.log"), "from the file\n");
symlinkSync("/etc/passwd", join(logDir, "passwd.log"));
afterAll(() => rmSync(logDir, { recursive: true }));

const signal = new AbortController().signal;

async function ask(query: string, journal: ExecResult | undefined, enabled = true): Promise<{ readonly answer: string; readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const exec = async (_: string, args: readonly string[]): Promise<ExecResult> => {
    asked.push(...args);
    if (!journal) throw new ExecError("not-found", "no journalctl");
    return journal;
  };
  const { status, body } = await logQuery({ logDir, enabled, exec }, new URLSearchParams(query), signal);
  let text = typeof body === "string" ? body : "";
  if (typeof body !== "string") for await (const chunk of body as Readable) text += String(chunk);
  return { answer: `${status} ${text.trim()}`, asked };
}

test("a service's log comes from the journal, else from its file; never from elsewhere", async () => {
  const { answer, asked } = await ask("query=kubelet&tailLines=5&sinceTime=2026-01-02T03:04:05Z&boot=-1&pattern=x", { exitCode: 0, stdout: "from the journal\n", stderr: "" });
  expect(answer).toBe("200 from the journal");
  expect(asked).toEqual(["--utc", "--no-pager", "--output=short-precise", "--since=2026-01-02 03:04:05", "--pager-end", "--lines=5", "--unit=kubelet", "--unit=coracle", "--grep=x", "--case-sensitive=false", "--boot", "-1"]);
  expect((await ask("query=nginx", undefined)).answer).toBe("200 from the file");
  expect((await ask("query=nginx&tailLines=1", undefined)).answer).toBe("200 options present and query resolved to log files for [nginx]\ntry without specifying options");
  expect((await ask("query=/nginx/nginx.log", undefined)).answer).toBe("200 from the file");
  expect((await ask("query=passwd", undefined)).answer).toBe("404 log not found for passwd");
  expect((await ask("query=/../../../etc/passwd", undefined)).answer).toBe("404 404 page not found");
  expect((await ask("query=nginx", undefined, false)).answer).toBe("403 Log query is not enabled on this node");
});

test("what is part of this process has logged where it does", async () => {
  writeFileSync(join(logDir, "coracle.log"), "from ours\n");
  const units = async (query: string): Promise<readonly string[]> => (await ask(query, { exitCode: 0, stdout: "x", stderr: "" })).asked.filter((arg) => arg.startsWith("--unit="));
  expect(await units("query=kube-proxy.service&query=kubelet")).toEqual(["--unit=kube-proxy.service", "--unit=kubelet", "--unit=coracle"]);
  expect(await units("query=nginx")).toEqual(["--unit=nginx"]);
  expect((await ask("query=kubelet", undefined)).answer).toBe("200 from ours");
  writeFileSync(join(logDir, "kubelet.log"), "from a kubelet\n");
  expect((await ask("query=kubelet", undefined)).answer).toBe("200 from a kubelet");
});

test.each([
  ["query=", "query: Required value: query cannot be empty"], ["query=-f", 'query: Invalid value: "-f": input contains unsupported characters'], ["query=a&tailLines=-1", "tailLines: Invalid value: -1: must be between 0 and 100000, inclusive"],
  ["query=a&boot=1", "boot: Invalid value: 1: must be less than 1"], ["query=a&sinceTime=soon", 'sinceTime: Invalid value: "soon": invalid time format'], ["query=a&x=1", "unknown option x"], ["query=a&query=b", undefined],
  ["query=/a&query=b&query=c", 'query: Invalid value: "[/a], [b c]": cannot specify a file and service'], ["query=/a&query=/b", 'query: Invalid value: ["/a","/b"]: cannot specify more than one file'],
  ["query=/a&tailLines=1", 'query: Invalid value: ["/a"]: cannot specify file with options'], ["query=a&query=b&query=c&query=d&query=e", "query: Too many: 5: must have at most 4 items"],
])("%s: %s", (query, problem) => {
  const params = new URLSearchParams(query);
  expect(problemOf(params, params.getAll("query"))).toBe(problem);
});

test("a checkpoint is made of a pod that is there", async () => {
  const api = { pod: ({ name }: { name: string }) => (name === "web" ? {} : undefined), checkpoint: async (_: unknown, container: string, seconds: number) => `/k/${container}-${seconds}.tar` } as unknown as KubeletApi;
  const go = (path: string, method = "POST", query = "") => route({ api, debugging: true, method, parts: path.split("/").slice(1), query: new URLSearchParams(query), signal } as unknown as Routed).then(({ body }) => body, (error: Error) => error.message);
  expect(await go("/checkpoint/shop/web/c", "POST", "timeout=7")).toBe('{"items":["/k/c-7.tar"]}');
  expect(await go("/checkpoint/shop/web/c", "POST", "timeout=x&timeout=8")).toBe('{"items":["/k/c-8.tar"]}');
  const unread = (timeout: string) => route({ api, debugging: true, method: "POST", parts: ["checkpoint", "shop", "web", "c"], query: new URLSearchParams({ timeout }), signal } as unknown as Routed).catch((error: AnswerError) => `${error.answer.status} ${error.message}`);
  expect([await unread("soon"), await unread("")]).toEqual(Array(2).fill("404 cannot parse value of timeout parameter"));
  expect([await go("/checkpoint/shop/none/c"), await go("/checkpoint/shop/web/c", "GET")]).toEqual(["pod does not exist", "405: Method Not Allowed"]);
});
