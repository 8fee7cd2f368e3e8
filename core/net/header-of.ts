import type { IncomingMessage } from "node:http";

/** A header of a request, by its name in lower case; several of the name are joined. */
export function headerOf({ headers }: Pick<IncomingMessage, "headers">, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}
