{{/* Fields of every pod of ours: (dict "root" $ "component" "webhook") */}}
{{- define "slurm-bridge.podSpec" -}}
{{- $values := get .root.Values .component }}
serviceAccountName: {{ include "slurm-bridge.name" .root }}-{{ .component }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClass.name }}
priorityClassName: {{ . }}
{{- end }}
dnsConfig:
  # A name with a dot is looked up as it is first: `slurmctld.hpc` must not find a Service in namespace hpc.
  options: [{name: ndots, value: "1"}]
securityContext:
  runAsNonRoot: true
  {{- with .root.Values.podSecurityContext }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  seccompProfile: {type: RuntimeDefault}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "slurm-bridge.selector" . | nindent 6 }}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "slurm-bridge.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/*
Deployment of one of our three programs. (dict "root" $ "component" "extender" "kubernetes" true "slurm" true "serves" true):
whether it talks to Kubernetes, to Slurm, and whether others call it by TLS. "program": what runs in it, if that has another name.
*/}}
{{- define "slurm-bridge.program" -}}
{{- $values := get .root.Values .component }}
{{- $name := printf "%s-%s" (include "slurm-bridge.name" .root) .component -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "slurm-bridge.labels" . | nindent 4 }}
spec:
  replicas: {{ $values.replicas }}
  selector:
    matchLabels: {{- include "slurm-bridge.selector" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "slurm-bridge.labels" . | nindent 8 }}
      annotations:
        checksum/config: {{ include "slurm-bridge.config" .root | sha256sum }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      automountServiceAccountToken: {{ .kubernetes }}
      {{- include "slurm-bridge.podSpec" . | nindent 6 }}
      containers:
      - name: {{ .component }}
        image: {{ include "slurm-bridge.image" (dict "image" .root.Values.image "tag" .root.Chart.AppVersion) }}
        imagePullPolicy: {{ .root.Values.image.pullPolicy }}
        args:
        - {{ .program | default .component }}
        - --config
        - /etc/slurm-bridge/config/config.yaml
        {{- $controls := has .component (include "slurm-bridge.controllersComponents" .root | fromJsonArray) }}
        {{- if or $controls (eq .component "webhook") }}
        - --self-test-namespace={{ include "slurm-bridge.selfTestNamespace" .root }}
        {{- end }}
        {{- if $controls }}
        {{- if dig "slurm_jobs" "enabled" false .root.Values.config }}
        - --companion-account={{ include "slurm-bridge.user" (dict "root" .root "component" "companions") }}
        {{- end }}
        {{- if eq .root.Values.tls.mode "managed" }}
        - --release={{ include "slurm-bridge.name" .root }}
        - {{ printf "--hosts=%s" (include "slurm-bridge.tlsHosts" .root | fromYaml | toJson) | quote }}
        {{- end }}
        {{- end }}
        {{- range $values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
        {{- with $values.extraEnv }}
        env: {{- toYaml . | nindent 10 }}
        {{- end }}
        ports:
        - {name: health, containerPort: 8080}  # /livez /readyz /metrics
        {{- if .serves }}
        - {name: https, containerPort: 8443}
        {{- end }}
        {{- if and .slurm (include "slurm-bridge.hasEscrow" .root) }}
        - {name: escrow, containerPort: 9443}
        {{- end }}
        startupProbe:
          httpGet: {path: /livez, port: health}  # never a peer: an outage of Slurm at the start is no reason to start again
          periodSeconds: 2
          timeoutSeconds: 5
          failureThreshold: 30
        livenessProbe:
          httpGet: {path: /livez, port: health}
          periodSeconds: 10
          timeoutSeconds: 5
          failureThreshold: 6
        readinessProbe:
          httpGet: {path: /readyz, port: health}
          periodSeconds: 5
          timeoutSeconds: 5
        {{- if .serves }}
        lifecycle:
          preStop:
            sleep: {seconds: 5}  # until no request is sent here any more
        {{- end }}
        securityContext: {{- include "slurm-bridge.containerSecurity" . | nindent 10 }}
        resources: {{- toYaml $values.resources | nindent 10 }}
        volumeMounts:
        - {name: config, mountPath: /etc/slurm-bridge/config, readOnly: true}
        {{- if .serves }}
        - {name: tls, mountPath: /etc/slurm-bridge/tls, readOnly: true}
        {{- end }}
        {{- if .slurm }}
        {{- if not (dig "slurm" "controller" "" .root.Values.config) }}
        - {name: slurm, mountPath: /etc/slurm-bridge/slurm, readOnly: true}
        {{- end }}
        {{- if .root.Values.slurmTls.existingSecret }}
        - {name: slurm-tls, mountPath: /etc/slurm-bridge/slurm-tls, readOnly: true}
        {{- end }}
        {{- if include "slurm-bridge.hasEscrow" .root }}
        - {name: escrow, mountPath: /etc/slurm-bridge/escrow, readOnly: true}
        {{- end }}
        {{- end }}
      volumes:
      - name: config
        configMap: {name: {{ include "slurm-bridge.name" .root }}-config}
      {{- if .serves }}
      - name: tls
        secret: {{- include "slurm-bridge.tlsVolume" . | nindent 10 }}
      {{- end }}
      {{- if .slurm }}
      {{- if not (dig "slurm" "controller" "" .root.Values.config) }}
      - name: slurm
        secret:
          secretName: {{ .root.Values.slurmToken.existingSecret }}
          defaultMode: 0440
          items: [{key: {{ .root.Values.slurmToken.key }}, path: token}]
      {{- end }}
      {{- with .root.Values.slurmTls.existingSecret }}
      - name: slurm-tls
        secret: {secretName: {{ . }}, defaultMode: 0440}
      {{- end }}
      {{- if include "slurm-bridge.hasEscrow" .root }}
      # Optional: no pod is placed later because these are missing, and the controllers' leader signs the certificate itself.
      - name: escrow
        projected:
          defaultMode: 0440
          sources:
          - secret:
              name: {{ .root.Values.escrow.existingSecret }}
              optional: true
              items: [{key: {{ .root.Values.escrow.key }}, path: token}]
          - secret:
              name: {{ include "slurm-bridge.tlsSecret" (dict "root" .root "component" "escrow") }}
              optional: true
              items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
      {{- end }}
      {{- end }}
{{- end }}

{{/* How slurmctld's script reaches a program, from outside the cluster: (dict "root" $ "component" "extender"); "servedBy": another's pods */}}
{{- define "slurm-bridge.escrowService" -}}
{{- $service := .root.Values.escrow.service -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "slurm-bridge.name" .root }}-{{ .component }}-escrow
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "slurm-bridge.labels" . | nindent 4 }}
  {{- with $service.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $service.type }}
  {{- with $service.sourceRanges }}
  loadBalancerSourceRanges: {{- toYaml . | nindent 2 }}
  {{- end }}
  selector: {{- include "slurm-bridge.selector" (dict "root" .root "component" (.servedBy | default .component)) | nindent 4 }}
  ports:
  - {name: escrow, port: 9443, targetPort: escrow}
{{- end }}

{{/* What a drain may take at a time: (dict "root" $ "component" "webhook") */}}
{{- define "slurm-bridge.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "slurm-bridge.name" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "slurm-bridge.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- include "slurm-bridge.selector" . | nindent 6 }}
{{- end }}

{{/* An image by its digest where there is one: (dict "image" .Values.image "tag" "default") */}}
{{- define "slurm-bridge.image" -}}
{{- .image.repository }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .tag }}{{ end }}
{{- end }}

{{/* A component's certificates as a volume; naming the keys makes its pods wait until they are there. */}}
{{- define "slurm-bridge.tlsVolume" -}}
secretName: {{ include "slurm-bridge.tlsSecret" . }}
defaultMode: 0440
items:
{{- range $file := list "tls.crt" "tls.key" "ca.crt" }}
- {key: {{ $file }}, path: {{ $file }}}
{{- end }}
{{- end }}

{{/* Service of a program that serves TLS: (dict "root" $ "component" "webhook") */}}
{{- define "slurm-bridge.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "slurm-bridge.name" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "slurm-bridge.labels" . | nindent 4 }}
spec:
  selector: {{- include "slurm-bridge.selector" . | nindent 4 }}
  ports:
  - {name: https, port: 443, targetPort: https}
{{- end }}
