import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { reviewServer } from "./authentication.ts";
import { followWebhookUsers, readKubeconfig } from "./kubeconfig-file.ts";

let directory: string;
beforeAll(() => { directory = mkdtempSync(join(tmpdir(), "kubeconfig-")); });
afterAll(() => rmSync(directory, { recursive: true }));

function written(text: string): string {
  const path = join(directory, "config");
  writeFileSync(path, text);
  return path;
}

const CONFIG = `
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://h:6443", certificate-authority-data: Q0E=, tls-server-name: other, insecure-skip-tls-verify: true}}]
users:
- {name: u, user: {tokenFile: token}}
- {name: "*.example.com", user: {username: joe, password: secret}}
`;

test("the server and the credentials of the current context, whose files stand beside it", () => {
  writeFileSync(join(directory, "token"), "t\n");
  expect(readKubeconfig(written(CONFIG))).toEqual({ server: "https://h:6443", credentials: { ca: "CA", cert: undefined, key: undefined, token: "t", serverName: "other", insecure: true } });
});

test("of several clusters and users those of the current context; of several files the first that says something", () => {
  const two = written(`
current-context: b
contexts: [{name: a, context: {cluster: a, user: a}}, {name: b, context: {cluster: b, user: b}}]
clusters: [{name: a, cluster: {server: "https://a:6443"}}, {name: b, cluster: {server: "https://b:6443", certificate-authority: ca.crt}}]
users: [{name: a, user: {token: of-a}}, {name: b, user: {token: of-b}}]
`);
  writeFileSync(join(directory, "ca.crt"), "CA of b");
  expect(readKubeconfig(two)).toMatchObject({ server: "https://b:6443", credentials: { ca: "CA of b", token: "of-b" } });
  const other = join(directory, "other");
  mkdirSync(other, { recursive: true });
  writeFileSync(join(other, "config"), "current-context: a\nclusters: [{name: b, cluster: {server: 'https://none:6443'}}]\nusers: [{name: a, user: {token: other}}]\n");
  expect(readKubeconfig([join(other, "config"), two])).toMatchObject({ server: "https://a:6443", credentials: { token: "other" } });
  expect(readKubeconfig([two, join(other, "config")])).toMatchObject({ server: "https://b:6443", credentials: { ca: "CA of b", token: "of-b" } });
});

test("who is followed has the token and the certificate that stand there now; what cannot be read takes the place of nothing", () => {
  const [token, cert, key] = ["token", "tls.crt", "tls.key"].map((name) => join(directory, name)) as [string, string, string];
  const write = (n: number): void => { for (const path of [token, cert, key]) writeFileSync(path, `${path} ${n}`); };
  write(1);
  const path = written(CONFIG.replace("tokenFile: token", "tokenFile: token, client-certificate: tls.crt, client-key: tls.key")), { url, ...server } = reviewServer(path), following = reviewServer(path);
  const now = () => [following.token, following.tls.cert, following.tls.key];
  expect([url, server.token, now()]).toEqual(["https://h:6443", `${token} 1`, [`${token} 1`, `${cert} 1`, `${key} 1`]]);
  write(2);
  expect(now()).toEqual([`${token} 2`, `${cert} 2`, `${key} 2`]);
  rmSync(key);
  expect(now()).toEqual([`${token} 2`, `${cert} 2`, `${key} 2`]);
});

test("users named after webhooks, and the current one, as they stand there a minute later", () => {
  writeFileSync(join(directory, "token"), "t\n");
  let nowMs = 0;
  const users = followWebhookUsers(written(CONFIG), { uptimeMs: () => nowMs });
  const told = () => [users.current?.token, users.named.get("*.example.com")?.username];
  expect(told()).toEqual(["t", "joe"]);
  writeFileSync(join(directory, "token"), "another\n");
  expect(told()).toEqual(["t", "joe"]);
  nowMs = 60_000;
  expect(told()).toEqual(["another", "joe"]);
  written("{");
  nowMs = 120_000;
  expect(told()).toEqual(["another", "joe"]);
});

test.each([
  ["users: []", "its current context names no server"],
  [CONFIG.replace("user: {tokenFile: token}", "user: {}"), "its current context has neither a certificate nor a token"],
  [CONFIG.replace("tokenFile: token", "tokenFile: nowhere"), "nowhere: no such file"],
  ["{", "--kubeconfig"],
])("a file that cannot be used %#", (text, why) => expect(() => readKubeconfig(written(text))).toThrow(why));
