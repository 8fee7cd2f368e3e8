import { expect, test } from "vitest";
import { podFromManifest } from "../node/kubelet/static-pods/manifest.ts";
import { completePod } from "./complete-pod.ts";

const origin = { nodeName: "n1", path: "/etc/kubernetes/manifests/web.yaml", nowMs: 0, complete: completePod };

function manifest(spec: string, head = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: kube-system}"): string {
  return `${head}\nspec: {containers: [{name: c, image: "nginx"}], ${spec}}`;
}

test("a pod from a file is complete, as if the API server had taken it in", () => {
  const pod = podFromManifest(manifest("initContainers: [{name: i, image: \"a:1\", ports: [{containerPort: 80}], livenessProbe: {httpGet: {port: 80}}, restartPolicy: Always}], volumes: [{name: v}]"), origin);
  expect(pod.metadata).toMatchObject({ name: "web-n1", namespace: "kube-system", annotations: { "kubernetes.io/config.hash": pod.metadata.uid, "kubernetes.io/config.source": "file" } });
  expect(pod.spec).toMatchObject({
    nodeName: "n1", restartPolicy: "Always", dnsPolicy: "ClusterFirst", terminationGracePeriodSeconds: 30, enableServiceLinks: true, tolerations: [{ operator: "Exists", effect: "NoExecute" }], volumes: [{ name: "v", emptyDir: {} }],
    containers: [{ imagePullPolicy: "Always", terminationMessagePath: "/dev/termination-log" }],
    initContainers: [{ imagePullPolicy: "IfNotPresent", ports: [{ protocol: "TCP" }], livenessProbe: { periodSeconds: 10, failureThreshold: 3, httpGet: { path: "/", scheme: "HTTP" } } }],
  });
});

test("the same pod has the same uid, however it is written; another one has another", () => {
  const uid = (text: string): string => podFromManifest(text, origin).metadata.uid;
  const json = JSON.stringify({ kind: "Pod", spec: { restartPolicy: "Never", containers: [{ image: "nginx", name: "c" }] }, apiVersion: "v1", metadata: { namespace: "kube-system", name: "web" } });
  expect(uid(`# a comment\n${manifest("restartPolicy: Never")}`)).toBe(uid(json));
  expect(uid(manifest("restartPolicy: OnFailure"))).not.toBe(uid(json));
});

test.each([
  ["its name", manifest("", "apiVersion: v1\nkind: Pod\nmetadata: {name: Web_1}").replace(", }", "}"), /invalid pod: metadata\.name: Invalid value: "Web_1-n1"/],
  ["no name", manifest("restartPolicy: Never", "apiVersion: v1\nkind: Pod\nmetadata: {}"), /invalid pod: name is needed for the pod/],
  ["another kind", "apiVersion: v1\nkind: Service\nmetadata: {name: a}", /Service/],
  ["a value of another type", manifest("terminationGracePeriodSeconds: soon"), /terminationGracePeriodSeconds/],
  ["two containers of one name", manifest("initContainers: [{name: c, image: a}]"), /spec\.initContainers\[0\]\.name: Duplicate value: "c"/],
  ["a Secret in a volume", manifest("volumes: [{name: v, secret: {secretName: s}}]"), /^static pods may not reference secrets$/],
  ["a ConfigMap in a projected volume", manifest("volumes: [{name: v, projected: {sources: [{configMap: {name: s}}]}}]"), /^static pods may not reference configmaps$/],
  ["a ServiceAccount", manifest("serviceAccountName: s"), /^static pods may not reference serviceaccounts$/],
  ["a claim", manifest("volumes: [{name: v, persistentVolumeClaim: {claimName: s}}]"), /^static pods may not reference persistentvolumeclaims$/],
])("a pod from a file is refused for %s", (_, text, message) => {
  expect(() => podFromManifest(text, origin)).toThrow(message);
});
