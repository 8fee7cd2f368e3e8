/** The object of an answer, for the audit log. Undefined: it is a stream, or no object. */
import type { Answer } from "./answer.ts";
import { listObject } from "./in-process.ts";

export function answeredObject(answer: Answer): unknown {
  switch (answer.type) {
    case "object": return answer.object;
    case "list": return listObject(answer);
    case "raw":
    case "watch":
    case "upgrade":
      return undefined;
  }
}
