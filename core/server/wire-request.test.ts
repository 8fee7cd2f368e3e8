import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import type { Connection } from "../net/connections.ts";
import { serverRequest } from "./wire-request.ts";

const queryOf = (url: string): string => serverRequest({ url, headers: {}, rawHeaders: [] } as unknown as IncomingMessage, {} as Connection, new AbortController().signal).query.toString();

test.each<[asked: string, understood: string]>([
  ["watch=True&limit=%31", "watch=True&limit=1"], ["labelSelector=a%3Db%20&limit=1", "labelSelector=a%3Db+&limit=1"], ["&limit=1&&=x&watch", "limit=1&=x&watch="],
  ["watch=1;x=2&limit=1", "limit=1"], ["labelSelector=a%zz&limit=1", "limit=1"], ["limit=1&labelSelector=a%2", "limit=1"], ["%=1&limit=1", "limit=1"], ["a=%3B%25", "a=%3B%25"],
])("parameters that Go cannot read are not there: ?%s", (asked, understood) => { expect(queryOf(`/api/v1/pods?${asked}`)).toBe(understood); });
