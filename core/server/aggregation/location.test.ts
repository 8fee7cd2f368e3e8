import { expect, test } from "vitest";
import { escapedPath, sortedQuery } from "./location.ts";

test.each([
  ["/a/b", "/a/b"], ["/a//b/", "/a//b/"], ["/a%2Fb", "/a/b"], ["/%7Ea", "/~a"], ["/a%2bb+c", "/a+b+c"], ["/[a]", "/%5Ba%5D"], ["/a'b(c)*!", "/a%27b%28c%29%2A%21"], ["/a:b;c=d@$&,", "/a:b;c=d@$&,"],
  ["/%E4%BD%A0%20", "/%E4%BD%A0%20"], ["/%FF", "/%FF"], ["/a%3Fb%25", "/a%3Fb%25"],
])("the path %s goes on as %s", (given, told) => expect(escapedPath(given)).toBe(told));

test.each([
  ["", ""], ["b=2&a=1", "a=1&b=2"], ["a=2&a=1", "a=2&a=1"], ["a", "a="], ["a=%20+", "a=++"], ["a=b;c=d&e=1", "e=1"], ["a=%zz&b=1", "b=1"], ["%41=%42", "A=B"], ["a=b=c/d", "a=b%3Dc%2Fd"], ["=x", "=x"], ["&&a=1", "a=1"],
  ["watch=1&labelSelector=a%3Db,c", "labelSelector=a%3Db%2Cc&watch=1"], ["a=%C3%A9\"<>", "a=%C3%A9%22%3C%3E"], ["B=1&a=1", "B=1&a=1"],
])("the query %s goes on as %s", (given, told) => expect(sortedQuery(given)).toBe(told));
