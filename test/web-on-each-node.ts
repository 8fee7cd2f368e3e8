/** A web server on each node that answers with its node's name, so that one sees who has answered, at port 8080; and a Service of them all, `web`, at port 80. */
export function webOnEachNode({ clusterIp }: { readonly clusterIp?: string } = {}): string {
  return `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: c
        image: busybox:1
        imagePullPolicy: Never
        command: [sh, -c, "mkdir /www; echo $NODE > /www/index.html; exec httpd -f -p 8080 -h /www"]
        env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {${clusterIp === undefined ? "" : `clusterIP: ${clusterIp}, `}selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`;
}
