{{/* "true" if slurmctld's script holds native jobs of hybrid nodes back; else "". */}}
{{- define "slurm-bridge.hasEscrow" -}}
{{- if eq (dig "nodes" "hybrid" "" .Values.config) "escrow" }}true{{ end }}
{{- end }}

{{/* config.yaml: what the administrator set, and what only the chart knows. */}}
{{- define "slurm-bridge.config" -}}
{{- $chart := dict
  "kubernetes" (dict "namespace" .Release.Namespace)
  "slurm" (dict "token_file" "/etc/slurm-bridge/slurm/token")
  "server" (dict "cert_file" "/etc/slurm-bridge/tls/tls.crt" "key_file" "/etc/slurm-bridge/tls/tls.key")
  "extender" (dict "client_ca_file" "/etc/slurm-bridge/tls/ca.crt")
}}
{{- if dig "slurm_jobs" "enabled" false .Values.config }}
{{- $image := dig "slurm_jobs" "companion_image" "" .Values.config | default (include "slurm-bridge.image" (dict "image" .Values.image "tag" .Chart.AppVersion)) }}
{{- $_ := set $chart "slurm_jobs" (dict "companion_image" $image) }}
{{- end }}
{{- if .Values.slurmTls.existingSecret }}
{{- $_ := set $chart.slurm "ca_file" "/etc/slurm-bridge/slurm-tls/ca.crt" }}
{{- if .Values.slurmTls.clientCertificate }}
{{- $_ := set $chart.slurm "cert_file" "/etc/slurm-bridge/slurm-tls/tls.crt" }}
{{- $_ := set $chart.slurm "key_file" "/etc/slurm-bridge/slurm-tls/tls.key" }}
{{- end }}
{{- end }}
{{- if include "slurm-bridge.hasEscrow" . }}
{{- $_ := set $chart "escrow" (dict "listen" "0.0.0.0:9443" "token_file" "/etc/slurm-bridge/escrow/token") }}
{{- end }}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) $chart) }}
{{- end }}

{{/* The scheduler's profile: https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/ */}}
{{- define "slurm-bridge.schedulerConfig" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 4                 # Slurm has chosen: one node is looked at per pod
percentageOfNodesToScore: 100  # never sample the nodes: the one Slurm chose must be among them
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 5
clientConnection:
  kubeconfig: {{ .Values.scheduler.kubeconfig | quote }}
  qps: 200
  burst: 400
leaderElection:
  leaderElect: {{ .Values.scheduler.leaderElect }}
  resourceNamespace: {{ .Release.Namespace }}
  resourceName: {{ include "slurm-bridge.name" . }}-scheduler
profiles:
- schedulerName: {{ .Values.config.scheduler_name }}
  plugins:
    multiPoint:
      disabled:
      - name: DefaultPreemption  # Slurm decides who is preempted
      - name: PodTopologySpread  # these two would veto Slurm's node; the webhook refuses what they would enforce
      - name: InterPodAffinity
      - name: NodeResourcesBalancedAllocation  # scores of a single node
      - name: ImageLocality
extenders:
- urlPrefix: {{ .Values.extender.url | default (printf "https://%s" (include "slurm-bridge.serviceHost" (dict "root" . "component" "extender"))) }}/v1
  filterVerb: filter
  bindVerb: bind
  nodeCacheCapable: true
  ignorable: false             # without us no pod of ours runs
  httpTimeout: 5s
  enableHTTPS: true
  tlsConfig:
    caFile: {{ .Values.scheduler.tlsDirectory }}/ca.crt
    certFile: {{ .Values.scheduler.tlsDirectory }}/tls.crt
    keyFile: {{ .Values.scheduler.tlsDirectory }}/tls.key
{{- end }}

{{- define "slurm-bridge.schedulerFeatureGates" -}}
{{- $gates := list }}
{{- range $gate, $on := .Values.scheduler.featureGates }}{{ $gates = append $gates (printf "%s=%t" $gate $on) }}{{ end }}
{{- join "," $gates }}
{{- end }}
