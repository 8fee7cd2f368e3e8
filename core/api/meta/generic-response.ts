/**
 * What a client says of an answer that is no Status: the server's own text is told only where upstream's clients tell it.
 * Source: kubernetes v1.36 apimachinery/pkg/api/errors/errors.go NewGenericServerResponse
 */
import type { GroupResource } from "./gvk.ts";
import { NOT_SERVED, type StatusError, statusError, type StatusReason } from "./status-error.ts";

const BY_STATUS: Readonly<Record<number, readonly [reason: StatusReason, message: string]>> = {
  400: ["BadRequest", "the server rejected our request for an unknown reason"],
  401: ["Unauthorized", "the server has asked for the client to provide credentials"],
  404: ["NotFound", NOT_SERVED],
  405: ["MethodNotAllowed", "the server does not allow this method on the requested resource"],
  409: ["Conflict", "the server reported a conflict"],
  422: ["Invalid", "the server rejected our request due to an error in our request"],
  429: ["TooManyRequests", "the server has received too many requests and has asked us to try again later"],
  503: ["ServiceUnavailable", "the server is currently unable to handle the request"],
  504: ["Timeout", "the server was unable to return a response in the time allotted, but may still be processing the request"],
};

export function serverSaid(status: number, text: string): string {
  const told = text.trim();
  if (status === 403) return told || "the server rejected our request due to an error in our request"; // what it says is for us
  const known = BY_STATUS[status]?.[1];
  if (known) return known;
  return status >= 500 ? `an error on the server (${JSON.stringify(told || "unknown")}) has prevented the request from succeeding` : `the server responded with the status code ${status} but did not return more information`;
}

/** `asked`: what the request was about, if it was about a resource. `verb` is the HTTP method. */
export function genericResponse(status: number, text: string, asked?: { readonly verb: string; readonly resource: GroupResource; readonly name: string }): StatusError {
  const { group, resource } = asked?.resource ?? { group: "", resource: "" };
  const subject = resource === "" ? "" : ` (${[asked!.verb.toLowerCase(), group === "" ? resource : `${resource}.${group}`, asked!.name].filter((word) => word !== "").join(" ")})`;
  const reason = BY_STATUS[status]?.[0] ?? (status === 403 ? "Forbidden" : status >= 500 ? "InternalError" : "");
  return statusError({ code: status, reason, message: `${serverSaid(status, text)}${subject}`, details: { ...(asked && { group, kind: resource, name: asked.name }), causes: [{ reason: "UnexpectedServerResponse", message: text.trim() }] } });
}
