{{/*
Certificates. In mode "managed" the controllers' leader has a CA of its own and signs; these are the names and addresses the
parts are called by, as YAML. The scheduler is a client and has none.
*/}}
{{- define "slurm-bridge.tlsHosts" -}}
{{- $hosts := dict "scheduler" list }}
{{- range $component := list "webhook" "extender" }}
{{- $host := include "slurm-bridge.serviceHost" (dict "root" $ "component" $component) }}
{{- $url := get (get $.Values $component) "url" }}
{{- $_ := set $hosts $component ($url | empty | ternary (list $host (printf "%s.cluster.local" $host)) (list (urlParse $url).hostname)) }}
{{- end }}
{{- if include "slurm-bridge.hasEscrow" . }}
{{- $_ := set $hosts "escrow" .Values.escrow.hosts }}
{{- end }}
{{- toYaml $hosts }}
{{- end }}
