import { expect, test } from "vitest";
import { openIdAnswer } from "./openid-paths.ts";

const ISSUER = { issuer: "https://a", jwksUri: "https://a/openid/v1/jwks", keys: [] };

test("documents of the issuer are read, and nothing else is done with them", () => {
  for (const path of ["/openid/v1/jwks", "/.well-known/openid-configuration/"]) {
    expect(openIdAnswer({ method: "GET", path }, ISSUER)).toMatchObject({ status: 200 });
    for (const method of ["HEAD", "POST", "OPTIONS", "DELETE"]) expect(() => openIdAnswer({ method, path }, ISSUER)).toThrow("the server does not allow this method on the requested resource");
  }
  expect(openIdAnswer({ method: "POST", path: "/openid" }, ISSUER)).toBeUndefined();
});
