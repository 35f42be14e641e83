{{- define "slurm-exporter.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "slurm-exporter.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- define "slurm-exporter.selector" -}}
app.kubernetes.io/name: slurm-exporter
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "slurm-exporter.labels" -}}
{{ include "slurm-exporter.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Whether anything is installed: SchedMD's exporter.enabled. */}}
{{- define "slurm-exporter.enabled" -}}
{{- if or (not (hasKey .Values.exporter "enabled")) .Values.exporter.enabled }}true{{ end }}
{{- end }}

{{- define "slurm-exporter.names" -}}
{{- if .Values.names }}{{ .Values.names }}{{ else if .Values.exporter }}slinky{{ else }}own{{ end }}
{{- end }}

{{- define "slurm-exporter.server" -}}
{{- $scheme := ternary "https" "http" (or .Values.ca.configMap .Values.ca.secret | empty | not) }}
{{- default (printf "%s://slurm-restapi.%s:6820" $scheme (include "slurm-exporter.namespace" .)) .Values.server }}
{{- end }}

{{- define "slurm-exporter.secret" -}}
{{- required "token.existingSecret: expected the name of a Secret with a Slurm JWT (exporter.secretName in slurm-exporter's values)" (default .Values.exporter.secretName .Values.token.existingSecret) }}
{{- end }}
