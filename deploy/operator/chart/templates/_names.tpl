{{/* The program reads cluster-wide and has one lease: one release in a cluster, under one name. */}}
{{- define "slurm-operator.name" -}}slurm-bridge-operator{{- end }}

{{- define "slurm-operator.selector" -}}
app.kubernetes.io/name: slurm-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "slurm-operator.labels" -}}
{{ include "slurm-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* config.yaml: what the administrator set, and what only the chart knows. */}}
{{- define "slurm-operator.config" -}}
{{- $chart := dict
  "kubernetes" (dict "namespace" .Release.Namespace)
  "operator" (dict "namespaces" .Values.namespaces "priority_class" .Values.priorityClass.name)
  "slurm" (dict "token_file" (printf "/etc/slurm-operator/token/%s" .Values.slurmToken.key))
}}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) $chart) }}
{{- end }}
