/**
 * A scheduler extender, for scheduling.test.ts: nodes whose names it was given are too far; of the others it likes the last one best. Runs on a host where the checkout
 * cannot be seen: one file, no imports of ours.
 *
 *   bun extender.js PORT LOG TOO_FAR,…
 */
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";

const [port, log, far = ""] = process.argv.slice(2);
const tooFar = new Set(far.split(","));

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { Pod: pod, NodeNames: names } = JSON.parse(Buffer.concat(chunks).toString());
  appendFileSync(log, `${JSON.stringify({ path: request.url, pod: pod.metadata.name, names })}\n`);
  const answer = request.url.endsWith("/filter")
    ? { NodeNames: names.filter((name) => !tooFar.has(name)), FailedNodes: Object.fromEntries(names.filter((name) => tooFar.has(name)).map((name) => [name, "too far"])) }
    : names.map((name) => ({ Host: name, Score: name === names.toSorted().at(-1) ? 10 : 0 }));
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(answer));
}).listen(Number(port), "127.0.0.1");
