/**
 * Others whom an API server asks who somebody is and what they may do, for security.test.ts: an OpenID Connect issuer, and webhooks for tokens and access.
 * Runs on a host where the checkout cannot be seen: one file, no imports of ours.
 *
 *   bun identity-provider.js PORT CERT KEY LOG        https on PORT; GET /token?<claims> gives a token with these claims
 */
import { createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:https";

const [port, cert, key, log] = process.argv.slice(2);
const issuer = `https://localhost:${port}`;
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const jwk = { ...createPublicKey(privateKey).export({ format: "jwk" }), kid: "1", use: "sig", alg: "ES256" };

function token(claims) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ alg: "ES256", kid: "1" })}.${part({ iss: issuer, aud: "cluster", exp: Math.floor(Date.now() / 1000) + 600, ...claims })}`;
  return `${signed}.${sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}

/** Whose "opaque" is, and that they may see ConfigMaps, but never nodes. */
function review({ spec, ...rest }) {
  const { resource } = spec.resourceAttributes ?? {};
  const status = spec.token !== undefined ? { authenticated: spec.token === "opaque", ...(spec.token === "opaque" ? { user: { username: "known-elsewhere", groups: ["elsewhere"] } } : {}) }
    : resource === "nodes" ? { allowed: false, denied: true, reason: "nobody sees nodes" } : { allowed: resource === "configmaps", reason: "as you like" };
  return { ...rest, spec, status };
}

createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) => {
  const url = new URL(request.url, issuer);
  let body = "";
  request.on("data", (chunk) => { body += chunk; });
  request.on("end", () => {
    appendFileSync(log, `${JSON.stringify({ path: url.pathname, spec: body === "" ? null : JSON.parse(body).spec })}\n`);
    if (url.pathname === "/.well-known/openid-configuration") response.end(JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` }));
    else if (url.pathname === "/keys") response.end(JSON.stringify({ keys: [jwk] }));
    else if (url.pathname === "/token") response.end(token(JSON.parse(decodeURIComponent(url.search.slice(1)))));
    else response.end(JSON.stringify(review(JSON.parse(body))));
  });
}).listen(Number(port), "127.0.0.1");
