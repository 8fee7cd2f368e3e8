/**
 * Whom the API server speaks for, in the headers an extension server believes from whoever shows the front proxy's certificate.
 *
 * Source: kubernetes v1.36 client-go/transport/round_trippers.go
 */
import { headerField } from "../../api/request/header-text.ts";
import type { UserInfo } from "../../api/request/user.ts";

/** What the aggregator itself asks, it asks in this name: nobody refuses it. */
export const AGGREGATOR: UserInfo = { name: "system:kube-aggregator", groups: ["system:masters"] };

export function identityHeaders({ name, uid, groups, extra = {} }: UserInfo): (readonly [string, string])[] {
  return [
    ["X-Remote-User", headerField(name)],
    ...(uid ? [["X-Remote-Uid", headerField(uid)] as const] : []),
    ...groups.map((group) => ["X-Remote-Group", headerField(group)] as const),
    ...Object.entries(extra).flatMap(([key, values]) => values.map((value) => [`X-Remote-Extra-${headerKey(key)}`, headerField(value)] as const)),
  ];
}

/** Bytes that a header's name may hold, but for "%", which escapes the others. */
const PLAIN = /[A-Za-z0-9!#$&'*+\-.^_`|~]/;

function headerKey(key: string): string {
  let escaped = "";
  for (const byte of Buffer.from(key)) {
    const letter = String.fromCharCode(byte);
    escaped += byte < 127 && PLAIN.test(letter) ? letter : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return escaped;
}
