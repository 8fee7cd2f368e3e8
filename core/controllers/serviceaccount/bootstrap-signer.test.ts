import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { CONFIG_MAPS, SECRETS } from "../../client/resources.ts";
import { bootstrapSignerController, detachedSignature } from "./bootstrap-signer.ts";

test.each([ // of upstream's jws_test.go
  ["Hello from the other side. I must have called a thousand times.", "my voice is my passcode", "VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"],
  ["", "my voice is my passcode", "7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk"],
])("the signature of %j", (content, secret, signature) =>
  expect(detachedSignature(content, { id: "joshua", secret })).toBe(`eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..${signature}`));

test("cluster-info is signed with each token that is for it, anew when it changes, and no longer when the token is gone", () =>
  withControllers((deps) => [bootstrapSignerController(deps)], async (api, call) => {
    const [maps, secrets] = [api.client.resource(CONFIG_MAPS), api.client.resource(SECRETS)];
    const token = (id: string, { name = `bootstrap-token-${id}`, type = "bootstrap.kubernetes.io/token", ...data }: Record<string, string> = {}) => secrets.create({
      apiVersion: "v1", kind: "Secret", type, metadata: { name, namespace: "kube-system" },
      data: Object.fromEntries(Object.entries({ "token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true", ...data }).map(([key, value]) => [key, btoa(value)])),
    }, call);
    const signer = await token("signer");
    await token("later1", { expiration: "2999-01-01T00:00:00Z" });
    await token("over01", { expiration: "2001-01-01T00:00:00Z" });
    await token("other1", { "usage-bootstrap-signing": "false" });
    await token("named1", { name: "bootstrap-token-another" });
    await token("typed1", { type: "Opaque" });
    await token("short");
    await token("empty1", { "token-secret": "" });
    await maps.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "cluster-info", namespace: "kube-public" }, data: { kubeconfig: "one", "jws-kubeconfig-left01": "x", note: "kept" } }, call);
    const told = () => api.all(CONFIG_MAPS)[0]!;
    const signed = (content: string, ...ids: string[]) => ({ kubeconfig: content, note: "kept", ...Object.fromEntries(ids.map((id) => [`jws-kubeconfig-${id}`, detachedSignature(content, { id, secret: "0123456789abcdef" })])) });
    await eventually(() => told().data, (data) => data?.["jws-kubeconfig-signer"] !== undefined);
    expect(told().data).toEqual(signed("one", "signer", "later1"));
    await maps.update({ ...told(), data: { ...told().data, kubeconfig: "two" } }, call);
    await eventually(() => told().data, (data) => data?.["jws-kubeconfig-signer"] === signed("two", "signer")["jws-kubeconfig-signer" as never]);
    await secrets.delete(signer, {}, call);
    await eventually(() => told().data, (data) => data?.["jws-kubeconfig-signer"] === undefined);
    expect(told().data).toEqual(signed("two", "later1"));
  }));
