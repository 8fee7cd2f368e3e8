import { expect, test } from "vitest";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import { keyPairProblem } from "./key-pair.ts";

test("a listener needs a certificate and its very key", async () => {
  const [one, other] = [servingMaterial(await testPki()), servingMaterial(await testPki())];
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const problemOf = (crt: string, key: string): string | undefined => keyPairProblem({ "tls.crt": base64(crt), "tls.key": base64(key) });
  expect(problemOf(one.cert, one.key)).toBeUndefined();
  expect(problemOf("Hello world\n", "Hello world\n")).toBe("has no certificate in tls.crt");
  expect(problemOf(one.cert, one.cert)).toBe("has no private key in tls.key");
  expect(problemOf(one.cert, other.key)).toBe("has a private key that is not its certificate's");
  expect(keyPairProblem()).toBe("has no certificate in tls.crt");
});
