import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { SECRETS, SERVICE_ACCOUNTS } from "../../client/resources.ts";
import { serviceAccountTokensController } from "./serviceaccount-tokens.ts";

test("an account does not go on naming a token that is deleted; a namespace that somebody has written into one stays", () =>
  withControllers((deps) => [serviceAccountTokensController({ ...deps, rootCa: () => "CA", tokenFor: () => "token" })], async (api, call) => {
    const [accounts, secrets] = [api.client.resource(SERVICE_ACCOUNTS), api.client.resource(SECRETS)];
    const make = (name: string, type: string, data = {}) => secrets.create({ apiVersion: "v1", kind: "Secret", type, metadata: { name, namespace: "apps", annotations: { "kubernetes.io/service-account.name": "robot" } }, data }, call);
    await accounts.create({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot", namespace: "apps" }, secrets: [{ name: "token" }, { name: "opaque" }, { name: "elsewhere" }] }, call);
    const [token, opaque] = [await make("token", "kubernetes.io/service-account-token", { namespace: btoa("mine") }), await make("opaque", "Opaque")];
    const filled = await eventually(() => api.all(SECRETS).find(({ metadata }) => metadata.name === "token"), (one) => one?.data?.["token"] !== undefined);
    expect(atob(filled!.data!["namespace"]!)).toBe("mine");
    await secrets.delete(opaque, {}, call);
    await secrets.delete(token, {}, call);
    await eventually(() => api.all(SERVICE_ACCOUNTS)[0]?.secrets?.map(({ name }) => name).join(), (names) => names === "opaque,elsewhere");
  }));
