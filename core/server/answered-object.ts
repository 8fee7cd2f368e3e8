/** The object of an answer, for the audit log. Undefined: it is a stream, or no object. */
import { assemble } from "../api/codec/pieces.ts";
import { builtInFacts } from "../api/schema/facts.ts";
import type { Answer, ListAnswer, ObjectAnswer } from "./answer.ts";
import { listObject } from "./in-process.ts";
import type { ServerRequest } from "./request.ts";
import { encodeListAtOnce, encodeObject } from "./respond.ts";

export function answeredObject(answer: Answer): unknown {
  switch (answer.type) {
    case "object": return answer.object;
    case "list": return plainList(answer);
    case "raw": return answer.document;
    case "watch":
    case "upgrade":
      return undefined;
  }
}

/** In the form that the client asked for: a Table, or nothing but metadata. */
export function shownObject(answer: Answer, request: ServerRequest, nowMs: number): unknown {
  const asked = request.header("accept")?.split(",").find((one) => /;\s*as=/.test(one));
  if (asked === undefined || (answer.type !== "object" && answer.type !== "list")) return answeredObject(answer);
  const accept = `application/json;${asked.split(";").slice(1).join(";")}`;
  return convertedObject(answer, { ...request, query: request.query, header: (name) => (name === "accept" ? accept : request.header(name)) }, nowMs);
}

function convertedObject(answer: ObjectAnswer | ListAnswer, request: ServerRequest, nowMs: number): unknown {
  try {
    const how = { request, nowMs: () => nowMs, describe: undefined };
    return JSON.parse(assemble((answer.type === "list" ? encodeListAtOnce(answer, how) : encodeObject(answer, how)).body).toString()) as unknown;
  } catch {
    return undefined; // the client is told that there is no such form of it
  }
}

/** Items of built-in kinds say nothing of their kind. */
function plainList(answer: ListAnswer): object {
  const list = listObject(answer);
  return builtInFacts.typeOf(answer.served.row) ? { ...list, items: list.items.map(({ apiVersion: _, kind: __, ...item }) => item) } : list;
}
