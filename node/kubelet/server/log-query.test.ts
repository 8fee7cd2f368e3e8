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
  expect((await ask("query=passwd", undefined)).answer).toBe("200 log not found for passwd");
  expect((await ask("query=/../../../etc/passwd", undefined)).answer).toBe('406 query: Invalid value: ["/../../../etc/passwd"]: statat /../../../etc/passwd: no such file or directory');
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

test("where the journal knows a service and has nothing to say of it, or cannot, that is told; of one that nobody knows, that there is no log", async () => {
  const of = async (query: string, ended: Partial<ExecResult>): Promise<string> => {
    const exec = async (_: string, args: readonly string[]): Promise<ExecResult> => (args[0] === "--field" ? { exitCode: 0, stdout: "ssh.service\n", stderr: "" } : { exitCode: 1, stdout: "", stderr: "", ...ended });
    const { status, body } = await logQuery({ logDir, enabled: true, exec }, new URLSearchParams(query), signal);
    return `${status} ${body as string}`;
  };
  expect(await of("query=ssh&pattern=x", { stdout: "-- No entries --\n" })).toBe("200 -- No entries --\n");
  expect(await of("query=ssh&boot=-9", { stderr: "No such boot\n" })).toBe("200 No such boot\n");
  expect(await of("query=a&query=b", { exitCode: 0, stdout: "-- No entries --\n" })).toBe("200 \nlog not found for a\n\nlog not found for b\n");
});

test.each([
  ["query=", 400, 'query: Invalid value: [""]: query cannot be empty'], ["query=+&query=++", 400, 'query: Invalid value: [" ","  "]: query cannot be empty'], ["query=a&query=", 0, ""],
  ["query=-f", 406, 'query: Invalid value: "-f": input contains unsupported characters'], [`query=${"a".repeat(257)}`, 406, `query: Invalid value: "${"a".repeat(257)}": length must be less than 256`],
  ["query=a&tailLines=-1", 406, "tailLines: Invalid value: -1: must be between 0 and 100000, inclusive"], ["query=a&tailLines=100000", 0, ""], ["query=a&tailLines=", 0, ""],
  ["query=a&tailLines=foo&boot=+", 400, '[boot: Invalid value: " ": strconv.Atoi: parsing " ": invalid syntax, tailLines: Invalid value: "foo": strconv.Atoi: parsing "foo": invalid syntax]'],
  ["query=a&boot=1", 406, "boot: Invalid value: 1: must be less than 1"], ["query=a&boot=-23", 0, ""], ["query=a&boot=", 0, ""],
  ["query=a&sinceTime=soon", 400, 'sinceTime: Invalid value: "soon": invalid time format'], ["query=a&untilTime=2019-12-04+02:00:00", 400, 'untilTime: Invalid value: "2019-12-04 02:00:00": invalid time format'], ["query=a&sinceTime=", 0, ""],
  ["query=a&sinceTime=2023-02-04T02:00:00Z&untilTime=2023-01-04T02:00:00Z", 406, 'untilTime: Invalid value: "2023-01-04T02:00:00Z": must be after `sinceTime`'],
  ["query=a&x=1", 0, ""], ["query=a&query=b", 0, ""], ["tailLines=5", 406, "query: Required value: cannot be empty with options"],
  ["query=/a&query=b&query=c", 406, 'query: Invalid value: "[/a], [b c]": cannot specify a file and service'], ["query=/a&query=/b", 406, 'query: Invalid value: ["/a","/b"]: cannot specify more than one file'],
  ["query=/a&tailLines=1", 406, 'query: Invalid value: ["/a"]: cannot specify file with options'], ["query=a&query=b&query=c&query=d&query=e", 406, "query: Too many: 5: must have at most 4 items"],
])("%s: %d %s", (query, status, problem) => {
  const params = new URLSearchParams(query);
  expect(problemOf(params, params.getAll("query").filter((name) => name.trim() !== ""))).toEqual(status === 0 ? undefined : { status, text: problem });
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
