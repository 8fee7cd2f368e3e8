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

test("a token of an account that was made anew stays, though our copy is of the account of before", () =>
  withControllers((deps) => {
    const accounts = deps.informers.of(SERVICE_ACCOUNTS);
    const late = { ...accounts, whenSynced: (signal: AbortSignal) => accounts.whenSynced(signal), onChange: (listener: never) => accounts.onChange(listener), get: (key: never) => { const one = accounts.get(key); return one && { ...one, metadata: { ...one.metadata, uid: "of-before" } }; } };
    const informers = { ...deps.informers, of: (ref: never, options: never) => ((ref as unknown) === SERVICE_ACCOUNTS ? late : deps.informers.of(ref, options)) } as unknown as typeof deps.informers;
    return [serviceAccountTokensController({ ...deps, informers, rootCa: () => "CA", tokenFor: () => "token" })];
  }, async (api, call) => {
    const account = await api.client.resource(SERVICE_ACCOUNTS).create({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot", namespace: "apps" } }, call);
    const annotations = { "kubernetes.io/service-account.name": "robot", "kubernetes.io/service-account.uid": account.metadata.uid };
    await api.client.resource(SECRETS).create({ apiVersion: "v1", kind: "Secret", type: "kubernetes.io/service-account-token", metadata: { name: "t", namespace: "apps", annotations } }, call);
    const filled = await eventually(() => api.all(SECRETS)[0], (one) => one === undefined || one.data?.["token"] !== undefined);
    expect(filled?.metadata.name).toBe("t");
  }));

test("a token that somebody else has filled, a backup say, is not written again", () =>
  withControllers((deps) => [serviceAccountTokensController({ ...deps, rootCa: () => "CA", tokenFor: () => "token" })], async (api, call) => {
    await api.client.resource(SERVICE_ACCOUNTS).create({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot", namespace: "apps" } }, call);
    const make = (name: string, data: Record<string, string>) => api.client.resource(SECRETS).create({ apiVersion: "v1", kind: "Secret", type: "kubernetes.io/service-account-token", metadata: { name, namespace: "apps", annotations: { "kubernetes.io/service-account.name": "robot" } }, data }, call);
    const filled = await make("filled", { "ca.crt": btoa("CA"), namespace: btoa("apps"), token: btoa("theirs") });
    await make("later", {});
    const secrets = await eventually(() => api.all(SECRETS), (all) => all.some(({ data }) => data?.["token"] === btoa("token")));
    expect(secrets.find(({ metadata }) => metadata.name === "filled")).toEqual(filled);
  }));
