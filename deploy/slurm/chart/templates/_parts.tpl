{{- define "slurm.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $full .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "slurm.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- define "slurm.labels" -}}
app.kubernetes.io/part-of: slurm
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* An object of ours: (dict "root" $ "kind" "Controller" "name" "…" "metadata" {…} "spec" {…}). */}}
{{- define "slurm.object" -}}
{{- $labels := merge dict (default dict (default dict .metadata).labels) (include "slurm.labels" .root | fromYaml) }}
{{- $metadata := merge (dict "name" .name "namespace" (include "slurm.namespace" .root) "labels" $labels) (default dict .metadata) }}
apiVersion: slinky.slurm.net/v1beta1
kind: {{ .kind }}
metadata: {{- toYaml $metadata | nindent 2 }}
spec: {{- toYaml .spec | nindent 2 }}
{{- end }}

{{/* A container of ours: (dict "root" $ "part" {image: {repository, tag, digest}, …}). Without an image, the operator's is taken. */}}
{{- define "slurm.container" -}}
{{- $part := deepCopy (default dict .part) }}
{{- $image := default "" $part.image }}
{{- if kindIs "map" $image }}
{{- if $image.repository }}
{{- if $image.digest }}{{ $image = printf "%s@%s" $image.repository $image.digest }}
{{- else }}{{ $image = printf "%s:%s" $image.repository (required (printf "%s: expected a tag or a digest" $image.repository) $image.tag) }}{{ end }}
{{- else }}{{ $image = "" }}{{ end }}
{{- end }}
{{- $part = omit $part "image" }}
{{- if $image }}{{ $part = set $part "image" $image }}{{ end }}
{{- set $part "imagePullPolicy" (default .root.Values.imagePullPolicy $part.imagePullPolicy) | toYaml }}
{{- end }}

{{/* A pod template: (dict "root" $ "part" {metadata, podSpec} "more" {…}). */}}
{{- define "slurm.template" -}}
{{- $spec := deepCopy (default dict .part.podSpec) }}
{{- with concat (default list $spec.imagePullSecrets) (default list .root.Values.imagePullSecrets) }}
{{- $_ := set $spec "imagePullSecrets" . }}
{{- end }}
{{- if and .root.Values.priorityClass.enabled (not $spec.priorityClassName) }}
{{- $_ := set $spec "priorityClassName" .root.Values.priorityClass.name }}
{{- end }}
{{- dict "metadata" (default dict .part.metadata) "spec" (merge (default dict .more) $spec) | toYaml }}
{{- end }}

{{/* Words of a configuration, one in a line: (dict "text" "A=1 B=2" "map" {A: 1, B: [2, 3]}). The text counts if there is one. */}}
{{- define "slurm.words" -}}
{{- if .text }}{{ .text | trim }}{{ else }}
{{- $words := list }}
{{- range $key, $value := default dict .map }}
{{- if kindIs "slice" $value }}{{ $value = join "," $value }}{{ end }}
{{- if ne (toString (default "" $value)) "" }}{{ $words = append $words (printf "%s=%v" $key $value) }}{{ end }}
{{- end }}
{{- join "\n" $words }}
{{- end }}
{{- end }}

{{/* One line of them. */}}
{{- define "slurm.line" -}}
{{- include "slurm.words" . | replace "\n" " " | trim }}
{{- end }}

{{- define "slurm.keyOf" -}}
{{- $ref := default dict .ref }}
{{- dict "name" (default .name $ref.name) "key" (default .key $ref.key) | toYaml }}
{{- end }}

{{- define "slurm.sssd" -}}
{{- include "slurm.keyOf" (dict "ref" .Values.sssd.secretRef "name" (printf "%s-sssd-conf" (include "slurm.fullname" .)) "key" "sssd.conf") }}
{{- end }}

{{/* The keys of the cluster, which its Controller and its Accounting share. */}}
{{- define "slurm.keys" -}}
{{- $name := include "slurm.fullname" . }}
slurmKeyRef: {{- include "slurm.keyOf" (dict "ref" .Values.slurmKey.secretRef "name" (printf "%s-auth-slurm" $name) "key" "slurm.key") | nindent 2 }}
jwtKeyRef: {{- include "slurm.keyOf" (dict "ref" .Values.jwtKey.secretRef "name" (printf "%s-auth-jwt" $name) "key" "jwt.key") | nindent 2 }}
{{- if .Values.jwksKeys.enabled }}
jwksKeyRef: {{- include "slurm.keyOf" (dict "ref" .Values.jwksKeys.configMapRef "name" (printf "%s-auth-jwks" $name) "key" "jwks.json") | nindent 2 }}
{{- end }}
{{- end }}
