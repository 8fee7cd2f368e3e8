/**
 * An API server behind ours, for aggregation.test.ts: serves things of extension.example.com/v1 to whoever the front proxy speaks for. Runs on a host
 * where the checkout cannot be seen: one file, no imports of ours.
 *
 *   bun extension.js PORT CERT KEY CLIENT_CA LOG
 */
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:https";

const [port, cert, key, ca, log] = process.argv.slice(2);
const GROUP_VERSION = "extension.example.com/v1";
const things = new Map([["one", { apiVersion: GROUP_VERSION, kind: "Thing", metadata: { name: "one", namespace: "default" } }]]);
const RESOURCES = { kind: "APIResourceList", apiVersion: "v1", groupVersion: GROUP_VERSION, resources: [{ name: "things", singularName: "thing", namespaced: true, kind: "Thing", verbs: ["create", "get", "list", "watch"], shortNames: ["th"] }] };
const V2 = { swagger: "2.0", paths: { [`/apis/${GROUP_VERSION}/things`]: { get: { operationId: "listThings", responses: { 200: { description: "OK", schema: { $ref: "#/definitions/com.example.Thing" } } } } } }, definitions: { "com.example.Thing": { description: "A thing of the extension.", type: "object", "x-kubernetes-group-version-kind": [{ group: "extension.example.com", version: "v1", kind: "Thing" }], properties: { size: { description: "How large it is.", type: "integer" } } } } };
const V3 = { openapi: "3.0.0", info: { title: "Extension", version: "v1" }, paths: { [`/apis/${GROUP_VERSION}/things`]: { get: { responses: {}, "x-kubernetes-group-version-kind": { group: "extension.example.com", version: "v1", kind: "Thing" } } } }, components: { schemas: { "com.example.Thing": V2.definitions["com.example.Thing"] } } };

function answer(request, response) {
  if (!request.socket.authorized) return send(response, 401, { kind: "Status", code: 401 });
  const url = new URL(request.url, "https://host");
  const user = { name: request.headers["x-remote-user"], groups: request.headers["x-remote-group"], authorization: request.headers.authorization ?? null };
  appendFileSync(log, `${JSON.stringify({ path: url.pathname, ...user })}\n`);
  const base = `/apis/${GROUP_VERSION}`;
  if (url.pathname === base) return send(response, 200, RESOURCES);
  if (url.pathname === "/openapi/v2") return send(response, 200, V2);
  if (url.pathname === "/openapi/v3") return send(response, 200, { paths: { [base.slice(1)]: { serverRelativeURL: `/openapi/v3${base}?hash=ABC` } } });
  if (url.pathname === `/openapi/v3${base}`) return send(response, 200, V3);
  const match = new RegExp(`^${base}(?:/namespaces/default)?/things(?:/(.*))?$`).exec(url.pathname);
  if (!match) return send(response, 404, { kind: "Status", apiVersion: "v1", status: "Failure", reason: "NotFound", code: 404 });
  if (url.searchParams.get("watch")) {
    response.writeHead(200, { "content-type": "application/json" });
    for (const object of things.values()) response.write(`${JSON.stringify({ type: "ADDED", object })}\n`);
    return;
  }
  if (request.method === "POST") {
    let text = "";
    request.on("data", (chunk) => { text += chunk; }).on("end", () => {
      const object = JSON.parse(text);
      things.set(object.metadata.name, object);
      send(response, 201, object);
    });
    return;
  }
  const one = match[1] && things.get(match[1]);
  if (match[1]) return one ? send(response, 200, one) : send(response, 404, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: `things.extension.example.com "${match[1]}" not found`, reason: "NotFound", code: 404 });
  send(response, 200, { kind: "ThingList", apiVersion: GROUP_VERSION, metadata: { resourceVersion: "1" }, items: [...things.values()] });
}

function send(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

const server = createServer({ cert: readFileSync(cert), key: readFileSync(key), ca: readFileSync(ca), requestCert: true, rejectUnauthorized: false }, answer);
server.on("upgrade", (request, socket) => { // what comes goes back
  socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  socket.pipe(socket);
});
server.listen(Number(port), "0.0.0.0");
