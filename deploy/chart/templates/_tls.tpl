{{/*
Certificates, as YAML: `secrets`, the Secrets to create (component -> data), and `caBundle` of the webhook (base64 or "").
Only mode "generate" makes any; what an earlier release made is kept. The scheduler proves who it is to the extender by a
client certificate of another CA, so that no serving certificate can be used to ask for a binding.
*/}}
{{- define "slurm-bridge.tls" -}}
{{- $result := dict "secrets" dict "caBundle" (.Values.tls.caBundle | b64enc) }}
{{- if eq .Values.tls.mode "generate" }}
{{- $secrets := dict }}
{{- range $component := list "webhook" "extender" "scheduler" }}
{{- with lookup "v1" "Secret" $.Release.Namespace (include "slurm-bridge.tlsSecret" (dict "root" $ "component" $component)) }}
{{- $_ := set $secrets $component .data }}
{{- end }}
{{- end }}
{{- if lt (len $secrets) 3 }}
{{- $secrets = include "slurm-bridge.newCertificates" . | fromYaml }}
{{- end }}
{{- $result = dict "secrets" $secrets "caBundle" (index $secrets "webhook" "ca.crt") }}
{{- end }}
{{- toYaml $result }}
{{- end }}

{{- define "slurm-bridge.newCertificates" -}}
{{- $days := 3650 }}
{{- $serving := genCA (printf "%s serving CA" (include "slurm-bridge.name" .)) $days }}
{{- $clients := genCA (printf "%s client CA" (include "slurm-bridge.name" .)) $days }}
{{- $secrets := dict }}
{{- range $component, $trusted := dict "webhook" $serving "extender" $clients }}
{{- $host := include "slurm-bridge.serviceHost" (dict "root" $ "component" $component) }}
{{- $pair := genSignedCert (printf "%s-%s" (include "slurm-bridge.name" $) $component) nil (list $host (printf "%s.cluster.local" $host)) $days $serving }}
{{- $_ := set $secrets $component (dict "tls.crt" ($pair.Cert | b64enc) "tls.key" ($pair.Key | b64enc) "ca.crt" ($trusted.Cert | b64enc)) }}
{{- end }}
{{- $pair := genSignedCert (printf "%s-scheduler" (include "slurm-bridge.name" .)) nil nil $days $clients }}
{{- $_ := set $secrets "scheduler" (dict "tls.crt" ($pair.Cert | b64enc) "tls.key" ($pair.Key | b64enc) "ca.crt" ($serving.Cert | b64enc)) }}
{{- toYaml $secrets }}
{{- end }}
