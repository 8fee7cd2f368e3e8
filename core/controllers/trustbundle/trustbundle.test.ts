import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { CLUSTER_TRUST_BUNDLES } from "../../client/resources.ts";
import { trustBundleController } from "./trustbundle.ts";

test("there is one bundle of the API server's signer, named after what is in it; those of before and others' of its name go", () => {
  let ca = "first", changed = (): void => undefined;
  return withControllers((deps) => [trustBundleController({ ...deps, resource: CLUSTER_TRUST_BUNDLES, rootCa: () => ca, onRootCa: (handler) => { changed = handler; return () => undefined; } })], async (api, call) => {
    const bundles = api.client.resource(CLUSTER_TRUST_BUNDLES);
    const held = () => api.all(CLUSTER_TRUST_BUNDLES).map(({ metadata: { name }, spec: { signerName, trustBundle } }) => [name.replace(/:[0-9a-f]{24}$/, ":…"), signerName, trustBundle]);
    const one = (text: string) => [["kubernetes.io:kube-apiserver-serving:…", "kubernetes.io/kube-apiserver-serving", text]];
    await eventually(held, (seen) => Bun.deepEquals(seen, one("first")));
    const first = api.all(CLUSTER_TRUST_BUNDLES)[0]?.metadata.name;
    await bundles.update({ ...api.all(CLUSTER_TRUST_BUNDLES)[0]!, spec: { signerName: "kubernetes.io/kube-apiserver-serving", trustBundle: "forged" } }, call);
    await eventually(held, (seen) => Bun.deepEquals(seen, one("first")));
    ca = "second";
    changed();
    await eventually(held, (seen) => Bun.deepEquals(seen, one("second")));
    expect(api.all(CLUSTER_TRUST_BUNDLES)[0]?.metadata.name).not.toBe(first);
  });
});
